# The SQL of src/front/store/migrations, in the order of its numbers, as texts that the database worker carries
# (front/store/dbworker_migrate.c). Sets migrations_source.

file(GLOB migration_files CONFIGURE_DEPENDS src/front/store/migrations/*.sql)
list(SORT migration_files)

set(migrations_text "    .section .rodata\n    .globl dbworker_migrations\n    .hidden dbworker_migrations\n")
string(APPEND migrations_text "    .type dbworker_migrations, %object\ndbworker_migrations:\n")
foreach(file ${migration_files})
    string(APPEND migrations_text "    .incbin \"${file}\"\n    .byte 0\n")
endforeach()
string(APPEND migrations_text "    .byte 0\n    .size dbworker_migrations, . - dbworker_migrations\n"
    "    .section .note.GNU-stack, \"\", %progbits\n")

set(migrations_source ${CMAKE_BINARY_DIR}/migrations.S)
file(CONFIGURE OUTPUT ${migrations_source} CONTENT "${migrations_text}" @ONLY)
set_source_files_properties(${migrations_source} PROPERTIES OBJECT_DEPENDS "${migration_files}")
