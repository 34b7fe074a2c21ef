/* The programs of analysis/ (programs.c) and the one of templates/mcp-gateway (core/identity.c), as
 * read-only data. The build gives the paths. */
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
    program sg_mcp_gateway, SG_mcp_gateway

    .section .note.GNU-stack, "", %progbits
