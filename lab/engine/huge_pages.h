// Huge pages for what a fabric is made of: with pages of 4 KiB a run of thousands of hosts finds the address of nearly
// every line that it fetches in memory first.
#pragma once

#include <cstddef>

namespace heddle::lab {

// Has the heap (the process's first, which brk extends) moved into huge pages, as far as the system lets it: kernels
// before Linux 6.1 do not know MADV_COLLAPSE, and then nothing changes. Returns how many bytes the kernel was asked for
// with success.
size_t collapse_heap();

}  // namespace heddle::lab
