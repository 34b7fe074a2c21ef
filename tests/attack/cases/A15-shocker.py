# case: A15
# title: files by handle
# users: user root
# control: seccomp
import struct

AT_FDCWD = -100
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
mount_id = ctypes.create_string_buffer(8)
refused("name_to_handle_at(/)", 303, AT_FDCWD, b"/", handle, mount_id, 0)
root = os.open("/usr", os.O_RDONLY)
# Inode 2, the root of an ext file system, in the form that ext uses.
crafted = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, 2, 0), 24)
for generation in range(4):
    struct.pack_into("I", crafted, 12, generation)
    refused(f"open_by_handle_at(inode 2, generation {generation})", 304, root, crafted, 0)
done()
