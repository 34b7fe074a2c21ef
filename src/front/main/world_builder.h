/* A world builder (wire/world_builder.h): makes one world, for the front. */
#pragma once

_Noreturn void builder_main(void);
