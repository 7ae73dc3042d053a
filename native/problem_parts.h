// The parts of a Problem from plain arrays, as the Python module and the C interface are given them.
#pragma once

#include <span>
#include <vector>

#include "problem.h"

namespace paritylab {

using Copies = std::vector<std::pair<uint32_t, uint32_t>>;

// planes: [digit][word], all MOST_DIGITS of them, first digit first.
Component component_of(bool plain, std::span<const uint32_t> planes, std::span<const uint32_t> always, Copies copies);
Term term_of(float coefficient, std::span<const uint32_t> mask);
std::vector<Field> fields_of(std::span<const int32_t> places);  // those of neighbouring bits are one
std::vector<uint32_t> by_word(std::span<const uint32_t> masks, size_t words);  // from [task][word] to [word][task]
void put_controls(Target& target, std::span<const uint32_t> masks, size_t words);  // [task][word], or none
void add_stage(std::vector<Stage>& stages, int64_t until, int law, int next, int64_t flip, int batch);

}  // namespace paritylab
