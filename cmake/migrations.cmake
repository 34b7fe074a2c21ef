# The SQL of src/front/store/migrations, in the order of its numbers, as texts that the clerk carries
# (front/store/clerk_migrate.c). Sets migrations_source.

file(GLOB migration_files CONFIGURE_DEPENDS src/front/store/migrations/*.sql)
list(SORT migration_files)

set(migrations_text "    .section .rodata\n    .globl clerk_migrations\n    .hidden clerk_migrations\n")
string(APPEND migrations_text "    .type clerk_migrations, %object\nclerk_migrations:\n")
foreach(file ${migration_files})
    string(APPEND migrations_text "    .incbin \"${file}\"\n    .byte 0\n")
endforeach()
string(APPEND migrations_text "    .byte 0\n    .size clerk_migrations, . - clerk_migrations\n"
    "    .section .note.GNU-stack, \"\", %progbits\n")

set(migrations_source ${CMAKE_BINARY_DIR}/migrations.S)
file(CONFIGURE OUTPUT ${migrations_source} CONTENT "${migrations_text}" @ONLY)
set_source_files_properties(${migrations_source} PROPERTIES OBJECT_DEPENDS "${migration_files}")
