/* The programs of analysis/, as read-only data: see programs.c. The build gives the paths. */
    .macro program name, file
    .globl \name, \name\()_end
    .hidden \name, \name\()_end
    .type \name, %object
\name:
    .incbin "\file"
    .size \name, . - \name
\name\()_end:
    .byte 0
    .endm

    .section .rodata
    program sg_data_analysis, SG_data_analysis
    program sg_tax_calculation, SG_tax_calculation
    program sg_compliance_check, SG_compliance_check

    .section .note.GNU-stack, "", %progbits
