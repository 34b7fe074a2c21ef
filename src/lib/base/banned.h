/* Functions that make it easy to be wrong. Using one is a compile error. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#undef alloca /* a macro in libc, and only plain names can be poisoned */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat strtok atoi atol gets
#pragma GCC poison alloca system popen
