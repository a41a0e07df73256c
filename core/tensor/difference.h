// Adds up a difference piece by piece, so that values of any size take bounded memory.
#pragma once

#include "tenon/compare.h"

namespace tenon {

class DifferenceMeter {
public:
    explicit DifferenceMeter(DType type) : type_(type) {}
    /// The next whole blocks of both; as many bytes of one as of the other.
    void add(std::span<const std::byte> got, std::span<const std::byte> expected);
    Difference result() const;

private:
    void add_number(double got, double expected, bool same);
    void add_equal(bool equal);
    void note(double error, double got, double expected);

    DType type_;
    Difference so_far_;
    double error_ = 0, energy_ = 0;  // sums of squares
    double worst_error_ = -1;
    bool is_counted_ = false;  // by equality alone
};

}  // namespace tenon
