// The functions of libFuzzer's interface that the targets define or call.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// Takes one input; any fault ends the process.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Changes an input in place, at most `room` bytes long; the new length. A target may define it.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t room, unsigned seed);
// libFuzzer's own changes of bytes.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t room);
}
