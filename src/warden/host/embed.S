/* What sandboxes get from us, as read-only data: see images.h. The build gives the paths. */
    .macro image name, path
    .globl \name, \name\()_end
    .hidden \name, \name\()_end
    .type \name, %object
    .balign 64
\name:
    .incbin "\path"
    .size \name, . - \name
\name\()_end:
    .byte 0
    .endm

    .section .rodata
    image sg_agent_image, SG_AGENT_IMAGE
    image sg_sudo_image, SG_SUDO_IMAGE
    image sg_template_image, SG_TEMPLATE_IMAGE

    .section .note.GNU-stack, "", %progbits
