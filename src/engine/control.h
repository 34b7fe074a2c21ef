/* Control builds (SG_CONTROL, tests only) read SANDGLASS_CONTROL_OMIT, a comma-separated list of
 * defences to leave out. With them the tests can show that the attack suite notices a missing
 * defence. A normal build cannot leave out any. */
#pragma once

#ifdef SG_CONTROL
unsigned control_omit(void); /* bits of inside/stage/defences.h */
#else
static inline unsigned control_omit(void)
{
    return 0;
}
#endif
