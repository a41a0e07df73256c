// Elements of every type that the mock reads or writes, one at a time or a row at a time. Written from the format's
// description alone, so that it can disagree with the CPU plugin.
#ifndef TENON_TESTS_MOCK_DECODE_H
#define TENON_TESTS_MOCK_DECODE_H

#include <cstddef>
#include <cstdint>

namespace mock {

bool is_float(uint32_t type);    // f32, f16, bf16
bool is_number(uint32_t type);   // those, i32, i64
bool can_decode(uint32_t type);  // those, and the block types that decode_row knows
bool is_index(uint32_t type);    // i32, i64

/// One element of a type for which is_number holds. i32 and i64 pass through double exactly up to 2^53.
double load(const std::byte *at, uint32_t type);
void store(std::byte *at, uint32_t type, double number);  // to nearest even; integers by truncation
int64_t load_index(const std::byte *at, uint32_t type);

/// n elements of a contiguous row of any type for which can_decode holds.
void decode_row(const std::byte *row, uint32_t type, int64_t n, float *out);

}  // namespace mock
#endif
