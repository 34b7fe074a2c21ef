/* Defences that a control build (SG_CONTROL, tests only) can leave out, one bit each, to show that
 * the attack suite notices. A normal build compiles every DEFENCE_OMITTED() to false. */
#pragma once

#define DEFENCE_SECCOMP   (1u << 0)
#define DEFENCE_NESTED_NS (1u << 1) /* user.max_*_namespaces = 0 */
#define DEFENCE_CAPS      (1u << 2) /* bounding set */
#define DEFENCE_NNP       (1u << 3) /* no_new_privs, and nosuid on the mounts */
#define DEFENCE_PROC_MASK (1u << 4) /* masked and read-only /proc */
#define DEFENCE_RLIMITS   (1u << 5)
#define DEFENCE_CGROUP    (1u << 6) /* memory, pids, cpu */
#define DEFENCE_DISK      (1u << 7) /* size and inodes of the sandbox's disk */
#define DEFENCE_NETNS     (1u << 8)
#define DEFENCE_UIDS      (1u << 9)  /* without it all sandboxes share the first id range */
#define DEFENCE_AGENT     (1u << 10) /* own uid and undumpable agent */
#define DEFENCE_PIVOT     (1u << 11) /* without it the old root stays mounted, at /oldroot */

#ifdef SG_CONTROL
#define DEFENCE_OMITTED(omit, layer) (((omit) & (layer)) != 0)
#else
#define DEFENCE_OMITTED(omit, layer) (0 && ((omit) & (layer)))
#endif
