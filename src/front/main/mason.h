/* A mason (wire/mason.h): makes one world, for the front. */
#pragma once

_Noreturn void mason_main(void);
