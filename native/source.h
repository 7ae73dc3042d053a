// Examples of a problem that is not a parity of uniform inputs: a register of them at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "problem.h"
#include "simd.h"
#include "targets.h"
#include "threefry.h"

namespace paritylab::PARITYLAB_ISA {

// A bijection whose output bits depend on all input bits (the finaliser of MurmurHash3).
inline vu mix(vu x) {
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// Digit i of the random number whose two words are a and b.
inline vu digit_of(const Key<vu>& both, int i) {
    return i == 0 ? both.a ^ both.b : mix(both.a + static_cast<uint32_t>(i) * (both.b | 1u));
}

// The components that inputs may come from at the moment, over all laws that some lane is at.
class Parts {
public:
    struct Part {
        const Component* component;
        uint32_t law;
        uint32_t from, below;  // the component words that choose it; below is inclusive
        bool any;              // whether all do
    };

    void set(const Problem& problem, const std::vector<int>& laws) {
        parts_.clear();
        digits_ = 1, with_digits_ = 0, chooses_ = false, laws_ = static_cast<int>(laws.size());
        for (const int l : laws) {
            const Law& law = problem.laws[l];
            const size_t last = law.components.size() - 1;
            chooses_ |= last > 0;
            for (size_t c = 0; c <= last; ++c) {
                const uint32_t from = c == 0 ? 0 : law.cumulative[c - 1], end = c == last ? 0 : law.cumulative[c];
                digits_ = std::max(digits_, law.components[c].digits);
                with_digits_ += law.components[c].digits > 1;
                if (c < last && end == from) continue;  // no word chooses it
                parts_.push_back({&law.components[c], static_cast<uint32_t>(l), from, end - 1, last == 0});
            }
        }
    }

    const std::vector<Part>& all() const { return parts_; }
    int digits() const { return digits_; }
    bool shares_digits() const { return with_digits_ > 1; }  // or else it is as well that each makes its own
    bool chooses() const { return chooses_; }
    bool one_law() const { return laws_ == 1; }

private:
    std::vector<Part> parts_;
    int digits_ = 1, with_digits_ = 0, laws_ = 0;
    bool chooses_ = false;
};

// Where each lane's inputs come from: from `law`, or where an example's word is below `moved` from `next`.
struct Standing {
    Parts parts;
    vu law{}, next{}, moved{};
    bool moving = false;
};

class Source {
public:
    explicit Source(const Problem& problem)
        : problem_(problem), words_(problem.words), most_(most_parts(problem)), made_(most_ * problem.words), use_(most_) {}

    // The words of the inputs of examples `index`, one in each lane.
    void draw(const Key<vu>& key, vu index, const Standing& standing, const vu* mask, vu* out) {
        const vu at = index * static_cast<uint32_t>(problem_.stride);
        if (standing.parts.all().size() == 1) {
            const Component& only = *standing.parts.all()[0].component;
            for (int w = 0; w < words_; ++w) out[w] = from_number(only, w, threefry(key, vu{}, at + w));
            copy_inputs(only, out);
        } else {
            draw_parts(key, at, standing, out);
        }
        if (problem_.leaks) leak(random_bits(key, at + problem_.component_word()), mask, out);
    }

    // The task of a training example, drawn.
    vu task(const Key<vu>& key, vu index) const {
        const vu word = random_bits(key, index * static_cast<uint32_t>(problem_.stride) + problem_.task_word());
        return task_of(problem_.target, word);
    }

private:
    static size_t most_parts(const Problem& problem) {
        size_t total = 0;
        for (const Law& law : problem.laws) total += law.components.size();
        return total;
    }

    vu from_number(const Component& component, int w, const Key<vu>& both) const {
        if (component.plain) return both.a ^ both.b;
        const auto plane = [&](int i) { return broadcast(component.planes[i * words_ + w]); };
        const vu step = both.b | 1u;
        vu less{}, seed = both.a + static_cast<uint32_t>(component.digits) * step;
        for (int i = component.digits; i-- > 1;) less = majority(plane(i), mix(seed -= step), less);
        if (component.digits > 0) less = majority(plane(0), both.a ^ both.b, less);
        return less | component.always[w];
    }

    vu from_digits(const Component& component, int w, const vu* digits) const {
        if (component.plain) return digits[0];
        vu less{};
        for (int i = component.digits; i-- > 0;) less = majority(broadcast(component.planes[i * words_ + w]), digits[i], less);
        return less | component.always[w];
    }

    // The digits are made once for all components that have several.
    void draw_parts(const Key<vu>& key, vu at, const Standing& standing, vu* out) {
        const std::vector<Parts::Part>& parts = standing.parts.all();
        choose(key, at, standing);
        for (int w = 0; w < words_; ++w) {
            const Key<vu> both = threefry(key, vu{}, at + w);
            vu digits[MOST_DIGITS];
            const bool once = standing.parts.shares_digits();
            for (int i = 0; once && i < standing.parts.digits(); ++i) digits[i] = digit_of(both, i);
            for (size_t p = 0; p < parts.size(); ++p) {
                const Component& component = *parts[p].component;
                made_[p * words_ + w] = once ? from_digits(component, w, digits) : from_number(component, w, both);
            }
        }
        std::fill_n(out, words_, vu{});
        for (size_t p = 0; p < parts.size(); ++p) {
            vu* made = &made_[p * words_];
            copy_inputs(*parts[p].component, made);
            for (int w = 0; w < words_; ++w) out[w] |= made[w] & use_[p];
        }
    }

    // Of each part, the lanes that take it.
    void choose(const Key<vu>& key, vu at, const Standing& standing) {
        const vu component = standing.parts.chooses() ? random_bits(key, at + problem_.component_word()) : vu{};
        const vu word = standing.moving ? random_bits(key, at + problem_.law_word()) : vu{};
        const vu law = standing.moving ? select(word < standing.moved, standing.next, standing.law) : standing.law;
        const std::vector<Parts::Part>& parts = standing.parts.all();
        for (size_t p = 0; p < parts.size(); ++p) {
            vi use = vi{} == 0;
            if (!standing.parts.one_law()) use &= law == parts[p].law;
            if (!parts[p].any) use &= (component >= parts[p].from) & (component <= parts[p].below);
            use_[p] = (vu)use;
        }
    }

    void copy_inputs(const Component& component, vu* words) const {
        for (const auto& [i, j] : component.copies) words[j / 32] ^= ((words[i / 32] >> (i % 32)) & 1u) << (j % 32);
    }

    void leak(vu word, const vu* mask, vu* words) const {
        const vi leaks = (word >> 1) < problem_.leak, minus = (word & 1u) == 1u;
        for (int w = 0; w < words_; ++w) {
            const vu equal = (words[w] & ~mask[w]) | ((vu)minus & mask[w]);
            words[w] = select(leaks, equal, words[w]);
        }
    }

    const Problem& problem_;
    int words_;
    size_t most_;
    std::vector<vu> made_;  // [part][word]
    std::vector<vu> use_;
};

}  // namespace paritylab::PARITYLAB_ISA
