"""The Python kernel of Sandglass. The protocol is described in kernels/README.md."""
