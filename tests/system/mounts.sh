#!/bin/bash
# S9: host directories and files inside, read-only or read-write, only where the operator allows.
. "$(dirname "$0")/lib.sh"

mkdir "$T/dir" "$T/dir/sub" "$T/roots" "$T/mine"
echo content >"$T/dir/file"
echo deep >"$T/dir/sub/file"
ln -s /etc/hostname "$T/dir/out-of-here"
chown -R 4321:4322 "$T/mine"
chmod 755 "$T/dir" "$T/dir/sub" "$T/mine"

# ---- read-only -----------------------------------------------------------------------------------

for user in $USERS; do
    for mode in "" ":ro"; do
        sg run -u "$user" --mount "$T/dir:/data$mode" -- sh -c 'cat /data/file /data/sub/file; echo x > /data/file; touch /data/new; rm /data/file; mkdir /data/sub/d; chmod 777 /data; ls /data'
        check "$user: a directory${mode:+ ($mode)} can be read" out_is $'content\ndeep\nfile\nout-of-here\nsub'
        check "$user: ... and not changed" \
            [ "$(grep -c 'Read-only file system' "$T/err")" -ge 4 ]
    done
    check "$user: ... the host's is as it was" \
        [ "$(find "$T/dir" | sort | xargs -n1 basename | tr '\n' ' '; cat "$T/dir/file")" = "dir file out-of-here sub file content" ]
    sg run -u "$user" -v "$T/dir/file:/etc/config:ro" -- sh -c 'cat /etc/config; echo x > /etc/config || echo refused'
    check "$user: one file, over what is there or not" all status_is 0 -- out_is $'content\nrefused'
    sg run -u "$user" -v "$T/dir:/a/b/c" -- cat /a/b/c/sub/file
    check "$user: the place is made" gives 0 deep
    sg run -u "$user" -v "$T/dir:/mnt" -v "$T/dir/sub:/srv/x" -v "$T/dir/file:/tmp/f" -- cat /mnt/file /srv/x/file /tmp/f
    check "$user: several" gives 0 $'content\ndeep\ncontent'
    sg run -u "$user" -v "$T/dir:/data" -- cat /data/out-of-here
    check "$user: a link inside leads to the sandbox's own files" gives 0 sandbox
    sg run -u "$user" --mount "$T/dir:/home/user/data" -- ls /home/user/data/sub
    check "$user: below the home directory" gives 0 file
done
cd "$T" || exit 1
sg run --mount dir:/data -- cat /data/file
check "a relative source starts at the caller's directory" gives 0 content
sg run --mount ./dir/../dir:/data -- cat /data/file
check "... with dots in it" gives 0 content
cd "$TOP" || exit 1
sg run -v "$T/dir:/data" 'print(open("/data/file").read(), end="")'
check "for code too" gives 0 content
sg run -v "$T/dir:/data" -- sh -c 'cp /usr/bin/id /tmp/; /tmp/id -u; mount | grep " /data " | grep -o "ro,nosuid,nodev"'
check "mounted ro, nosuid, nodev" gives 0 $'1000\nro,nosuid,nodev'

# A read-only mount does not show more than the user inside may see.
echo hidden >"$T/dir/private"
chmod 600 "$T/dir/private"
sg run -v "$T/dir:/data" -- cat /data/private
check "user: a file that only its owner may read stays so" all is_not status_is 0 -- out_is ''
rm "$T/dir/private"

# ---- read-write ----------------------------------------------------------------------------------

sg run -v "$T/mine:/work:rw" -- touch /work/x
check "read-write needs approval" refuses 125 "policy rule 'writable-mounts'.*$T/mine.*--approve"
check "... and nothing was written" [ -z "$(ls -A "$T/mine")" ]
for user in $USERS; do
    sg run -u "$user" --approve -v "$T/mine:/work:rw" -w /work -- sh -c "echo made > by-$user; mkdir dir-$user; echo more >> dir-$user/f; ln -s f dir-$user/link; cat by-$user; stat -c %U by-$user"
    check "$user: writes with approval" status_is 0
    check "$user: ... and the host sees it" [ "$(cat "$T/mine/by-$user" "$T/mine/dir-$user/link" | tr '\n' ' ')" = "made more " ]
    check "$user: files belong to the owner of the directory" \
        [ "$(stat -c %u:%g "$T/mine/by-$user" "$T/mine/dir-$user" "$T/mine/dir-$user/f" | sort -u)" = 4321:4322 ]
done
sg run --approve -v "$T/mine:/work:rw" -- stat -c %U:%G /work /work/by-user
check "inside they belong to user" gives 0 $'user:user\nuser:user'
sg run --approve -v "$T/mine:/work:rw" -- sh -c 'rm -r /work/* && ls -A /work'
check "what is there can be removed" gives 0 ''
check "... on the host too" [ -z "$(ls -A "$T/mine")" ]
install -o 4321 -g 4322 -m 644 /dev/null "$T/own-file"
sg run --approve -v "$T/own-file:/tmp/f:rw" -- sh -c 'echo changed > /tmp/f; cat /tmp/f'
check "one file, read-write" gives 0 changed
check "... on the host too" [ "$(cat "$T/own-file")" = changed ]
sg run --approve --disk 2M -v "$T/mine:/work:rw" -- dd if=/dev/zero of=/work/big bs=1M count=1 status=none
check "a writable mount is not the sandbox's disk" all gives 0 '' -- [ "$(stat -c %s "$T/mine/big")" = 1048576 ]
rm "$T/mine/big"

sg run --approve -v "$T/dir:/work:rw" -- touch /work/x
check "a directory of root is not writable, with approval neither" refuses 125 "'$T/dir' belongs to root.*(chown|read-only)"
check "... and nothing was written" [ ! -e "$T/dir/x" ]
sg run -u root --approve -v "$T/mine:/work:rw" -- sh -c 'cp /usr/bin/id /work/id; chmod 4755 /work/id; chown root /work/id; mknod /work/null c 1 3; true'
check "no file of root and no set-uid file comes out of it" \
    [ -z "$(find "$T/mine" \( -uid 0 -o -type c \) -print)" ]
check "... ids on the host stay the owner's" [ "$(find "$T/mine" -mindepth 1 -not -uid 4321 | wc -l)" -eq 0 ]
find "$T/mine" -mindepth 1 -delete
mkdir "$T/mine/theirs"
echo theirs >"$T/mine/theirs/f"
chown 0:0 "$T/mine/theirs/f"
chmod 600 "$T/mine/theirs/f"
for user in $USERS; do
    sg run -u "$user" --approve -v "$T/mine:/work:rw" -- sh -c 'cat /work/theirs/f; echo x > /work/theirs/f; chown user /work/theirs/f; chmod 777 /work/theirs/f'
    check "$user: a file of root in it is neither read nor changed" \
        all is_not status_is 0 -- out_is '' -- [ "$(stat -c %u:%a "$T/mine/theirs/f")$(cat "$T/mine/theirs/f")" = 0:600theirs ]
done

# ---- what is refused -----------------------------------------------------------------------------

sg run -v "$T/nothing-here:/data" -- true
check "a source that is not there" refuses 125 "$T/nothing-here.*No such file"
for source in /etc /usr /proc /var/lib /root / /run /dev/null /etc/shadow; do
    sg run -v "$source:/data" -- ls /data
    check "outside the allowed roots: $source" refuses 125 "$source"
    sg run --approve -v "$source:/data" -- ls /data
    check "... with approval neither: $source" refuses 125 "$source"
done
sg run -v "/etc:/data" -- ls /data
check "the rule is named" refuses 125 "policy rule 'mount-roots'.*'/etc'.*mount-root"
ln -s /etc "$T/link"
sg run -v "$T/link:/data" -- ls /data
check "a link that leads out of the roots" refuses 125 "rule 'mount-roots'.*'/etc'"
sg run -v "$T/../../etc:/data" -- ls /data
check "dots that lead out of the roots" refuses 125 "rule 'mount-roots'.*'/etc'"
ln -s "$T/dir" "$T/inner"
sg run -v "$T/inner:/data" -- cat /data/file
check "a link that stays inside is followed" gives 0 content
mkfifo "$T/fifo"
sg run -v "$T/fifo:/data" -- ls /data
check "neither a file nor a directory" refuses 125 "$T/fifo.*neither a directory nor a regular file"
for target in / relative/path /../etc /data/../etc ''; do
    sg run -v "$T/dir:$target" -- true
    check "a bad place inside: '$target'" all one_line -- out_is '' -- [ "$STATUS" -eq 2 -o "$STATUS" -eq 125 ]
done
for text in "$T/dir" ":/data" "$T/dir:/data:rx" "$T/dir:/data:" "$T/dir:/a:/b:ro" ""; do
    sg run -v "$text" -- true
    check "not of the form SRC:DST[:ro|rw]: '$text'" refuses 2 "--mount .*SRC:DST"
done
for target in /proc //dev/; do
    sg run -v "$T/dir:$target" -- cat "$target/file"
    check "over what nothing works without: $target" all one_line -- out_is '' -- refuses 125 "mount target '$target' would hide"
done
cd "$T" || exit 1
sg run -v "nothing/here:/data" -- true
check "errors name the path as it was given: one that is not there" refuses 125 "mount source 'nothing/here': No such file"
sg run -v "../../etc:/data" -- true
check "... one outside the roots, with what it is" refuses 125 "rule 'mount-roots': '../../etc' is '/etc', outside"
sg run -v "mine:/data:rw" -- true
check "... one that needs approval" refuses 125 "'mine' would be writable"
cd "$TOP" || exit 1
sg run -v "$T/dir/file:/data" -v "$T/dir:/data" -- true
check "a directory over a file" refuses 125 /data
many=()
for ((i = 0; i < 17; i++)); do
    many+=(-v "$T/dir:/data$i")
done
sg run "${many[@]}" -- true
check "more mounts than possible" all is_not status_is 0 -- one_line -- err_has "mounts"
sg run "${many[@]:0:32}" -- sh -c 'cat /data*/file | wc -l'
check "sixteen mounts" gives 0 16

finish
