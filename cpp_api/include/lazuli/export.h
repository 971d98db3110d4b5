// LAZULI_API marks what the library exports; everything else is hidden.
#pragma once

#define LAZULI_API __attribute__((visibility("default")))
