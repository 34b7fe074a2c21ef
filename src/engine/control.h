/* Control builds (SG_CONTROL, tests only) read SANDGLASS_CONTROL_OMIT, a comma-separated list of
 * layers to leave out, so that the attack suite can be shown to notice. A normal build cannot leave
 * anything out. */
#pragma once

#ifdef SG_CONTROL
unsigned control_omit(void); /* bits of inside/stage/defences.h */
#else
static inline unsigned control_omit(void)
{
    return 0;
}
#endif
