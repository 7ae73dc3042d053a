// Random orders of a sample: the stable order of its random words.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "words.h"

namespace paritylab::PARITYLAB_ISA {

// All samples of a group use one, so that its room stays in the cache.
class Shuffler {
public:
    // jnp.argsort(jax.random.bits(key, (size,)), stable=True)
    void operator()(Key<uint32_t> key, std::span<uint32_t> order) {
        words_.resize(order.size());
        draw_words(key, static_cast<uint32_t>(order.size()), words_.data());
        order.size() < SMALL ? sort_small(order) : sort_large(order);
    }

private:
    static constexpr size_t SMALL = 1 << 13;

    // From counts to where each begins.
    template <class Number>
    static void sum_before(std::vector<Number>& counts) {
        Number sum = 0;
        for (Number& count : counts) sum += std::exchange(count, sum);
    }

    // The leading bits of a word and, in place of the others, its index. By as many leading bits as an index has, words
    // fall into places of one or a few; exchanging neighbours puts nearly all of these in order.
    void sort_small(std::span<uint32_t> order) {
        const auto size = static_cast<uint32_t>(order.size());
        const int bits = std::bit_width(size);
        const uint32_t low = (1u << bits) - 1;
        begin_.assign(size_t{1} << bits, 0);
        for (const uint32_t word : words_) ++begin_[word >> (32 - bits)];
        sum_before(begin_);
        for (uint32_t i = 0; i < size; ++i) order[begin_[words_[i] >> (32 - bits)]++] = (words_[i] & ~low) | i;
        for (uint32_t round = 0; round < 4; ++round) {
            for (uint32_t i = round & 1; i + LANES <= size; i += LANES) exchange_neighbours(&order[i]);
        }
        for (uint32_t i = 1; i < size; i += LANES) {
            if (i + LANES <= size && rises(&order[i], low)) continue;
            for (uint32_t j = i; j < std::min(i + LANES, size); ++j) insert(order, j, low);
        }
        for (uint32_t& entry : order) entry &= low;
    }

    static vu load(const uint32_t* from) {
        vu v;
        std::memcpy(&v, from, sizeof v);
        return v;
    }

    static void exchange_neighbours(uint32_t* entries) {
        const vu v = load(entries);
        [&]<int... I>(std::integer_sequence<int, I...>) {
            const vu other = __builtin_shufflevector(v, v, (I ^ 1)...);
            const vu least = select(v < other, v, other), most = select(v < other, other, v);
            const vu sorted = __builtin_shufflevector(least, most, (I % 2 == 0 ? I : I + LANES)...);
            std::memcpy(entries, &sorted, sizeof sorted);
        }(std::make_integer_sequence<int, LANES>{});
    }

    // Whether the leading bits of each entry are more than those of the one before.
    static bool rises(const uint32_t* entries, uint32_t low) {
        return to_bits((load(entries - 1) | low) >= load(entries)) == 0;
    }

    void insert(std::span<uint32_t> order, uint32_t at, uint32_t low) const {
        const auto pair = [&](uint32_t entry) { return uint64_t{words_[entry & low]} << 32 | (entry & low); };
        const uint32_t entry = order[at];
        for (; at > 0 && pair(order[at - 1]) > pair(entry); --at) order[at] = order[at - 1];
        order[at] = entry;
    }

    // With the index in the low half, sorting pairs is a stable sort by the word. Two passes put them in the order of their
    // leading bits, a few more than it takes to tell them apart; little is left to the insertion sort.
    void sort_large(std::span<uint32_t> order) {
        const size_t size = order.size();
        half_sorted_.resize(size), sorted_.resize(size);
        const int bits = std::min(16, (static_cast<int>(std::bit_width(size)) + 5) / 2);
        const auto lower = [&](uint32_t word) { return word >> (32 - 2 * bits) & ((1u << bits) - 1); };
        const auto upper = [&](uint32_t word) { return word >> (32 - bits); };
        lower_.assign(size_t{1} << bits, 0), upper_.assign(size_t{1} << bits, 0);
        for (const uint32_t word : words_) ++lower_[lower(word)], ++upper_[upper(word)];
        sum_before(lower_), sum_before(upper_);
        for (size_t i = 0; i < size; ++i) half_sorted_[lower_[lower(words_[i])]++] = uint64_t{words_[i]} << 32 | i;
        for (const uint64_t pair : half_sorted_) sorted_[upper_[upper(static_cast<uint32_t>(pair >> 32))]++] = pair;
        for (size_t i = 1; i < size; ++i) {
            const uint64_t pair = sorted_[i];
            size_t at = i;
            for (; at > 0 && sorted_[at - 1] > pair; --at) sorted_[at] = sorted_[at - 1];
            sorted_[at] = pair;
        }
        std::ranges::transform(sorted_, order.begin(), [](uint64_t pair) { return static_cast<uint32_t>(pair); });
    }

    std::vector<uint32_t> words_, lower_, upper_;
    std::vector<uint16_t> begin_;
    std::vector<uint64_t> half_sorted_, sorted_;
};

}  // namespace paritylab::PARITYLAB_ISA
