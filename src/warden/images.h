/* The static programs that are part of this one: embed.S puts them there. */
#pragma once

#include <stdint.h>

extern const uint8_t sg_agent_image[], sg_agent_image_end[];
extern const uint8_t sg_sudo_image[], sg_sudo_image_end[];
