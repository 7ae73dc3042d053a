// A configuration as one message of bytes: what a program writes that has no C structures, to be read in place.
//
// Everything takes a multiple of 8 bytes, lowest first: whole numbers as 64 bits, reals as doubles, an array as its length
// and its data. message.cpp has the order.
#pragma once

#include <cstdint>
#include <vector>

#include "paritylab.h"

namespace paritylab {

// Reads from memory that stays as it is, at a multiple of 8. Past the end everything is 0, and `good` false.
class Reader {
public:
    Reader(const void* data, int64_t size) : at_(static_cast<const uint8_t*>(data)), left_(size) {}

    bool good() const { return good_; }
    int64_t whole() { return one<int64_t>(); }
    int32_t small() { return static_cast<int32_t>(whole()); }
    float real() { return static_cast<float>(one<double>()); }
    paritylab_floats floats() { return many<paritylab_floats, float>(whole()); }
    paritylab_words words() { return many<paritylab_words, uint32_t>(whole()); }
    paritylab_wholes wholes() { return many<paritylab_wholes, int64_t>(whole()); }
    const float* floats(int64_t count) { return many<paritylab_floats, float>(count).data; }
    const uint32_t* words(int64_t count) { return many<paritylab_words, uint32_t>(count).data; }

private:
    template <class T>
    T one() {
        const void* found = take(1, sizeof(T));
        return found ? *static_cast<const T*>(found) : T{};
    }

    template <class Many, class T>
    Many many(int64_t count) {
        const void* found = take(count, sizeof(T));
        return found ? Many{static_cast<const T*>(found), count} : Many{nullptr, 0};
    }

    const void* take(int64_t count, int64_t size) {
        if (count < 0 || count > left_ / size) good_ = false;
        if (!good_) return nullptr;
        const int64_t bytes = (count * size + 7) / 8 * 8;
        if (bytes > left_) good_ = false;
        const void* found = good_ ? at_ : nullptr;
        if (good_) at_ += bytes, left_ -= bytes;
        return found;
    }

    const uint8_t* at_;
    int64_t left_;
    bool good_ = true;
};

// A configuration with all that it points to. It is not to be moved.
struct Message {
    paritylab_config config{};
    paritylab_problem problem{};
    std::vector<int32_t> widths;

    Message() = default;
    Message(const Message&) = delete;
    void read(Reader& reader);
};

paritylab_law read_law(Reader& reader);

}  // namespace paritylab
