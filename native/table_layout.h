// Large batches of one run, with units in the lanes: of a sample's inputs there are only the rows of tables to look up.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "fold.h"
#include "groups.h"
#include "heads.h"
#include "samples.h"

namespace paritylab::PARITYLAB_ISA {

// A row of a table is that of 16 units, or 32. A register of labels, outputs and slopes has those of as many samples.
struct UnitsByTable : UnitsInLanesBy<4096>, PackedSamples {
    using PackedSamples::draw_words, PackedSamples::get, PackedSamples::put, PackedSamples::spread;
    using PackedSamples::example_index, PackedSamples::EXAMPLES, PackedSamples::PACKED;
    static constexpr int WHOLE = PARTS;
    static constexpr int MAX_UNITS = 2 * PARTS;  // two share the loads of a sample's rows, and one sum over units

    static int vectors(int width) { return (width + 15) / 16 * PARTS; }

    class Inputs {
    public:
        explicit Inputs(const Config& config)
            : groups_(plan_groups(config)), rows_(groups_.size() * BLOCK), words_(config.words()) {}

        void draw(const Key<vu>& key, uint32_t first, int count, const vu* mask, vf* y) {
            const auto words = static_cast<uint32_t>(words_.size());
            for (int s = 0; s < count; s += LANES) {
                vu masked{};
                for (uint32_t w = 0; w < words; ++w) {
                    words_[w] = random_bits(key, (broadcast(first + s) + iota()) * words + w);
                    masked ^= words_[w] & mask[w];
                }
                put_drawn(s, count, words_.data());
                y[s / LANES] = sign_of(parity_to_sign(masked));
            }
        }

        void put(int /*slot*/, int s, const uint32_t* words) {
            uint16_t* row = &rows_[s * groups_.size()];
            for (const InputGroup& group : groups_) *row++ = static_cast<uint16_t>(group.row + pattern(group, words));
        }

        void put_drawn(int s, int /*count*/, const vu* words) {
            for (size_t g = 0; g < groups_.size(); ++g) {
                const vu row = pattern(groups_[g], words) + static_cast<uint32_t>(groups_[g].row);
                for (int lane = 0; lane < LANES; ++lane) {
                    rows_[(s + lane) * groups_.size() + g] = static_cast<uint16_t>(row[lane]);
                }
            }
        }

        void copy(const Inputs& from, int count) {
            std::copy_n(from.rows_.data(), count * groups_.size(), rows_.data());
        }

        const std::vector<InputGroup>& groups() const { return groups_; }
        const uint16_t* rows(int s) const { return &rows_[s * groups_.size()]; }  // of each group

        uint32_t bits(int word, int s, int /*lane*/) const {
            uint64_t found = 0;
            for (size_t g = 0; g < groups_.size(); ++g) {
                const InputGroup& group = groups_[g];
                const int value = rows(s)[g] - group.row;
                for (int i = 0; i < group.inputs; ++i) {
                    const bool on = group.one_on ? i == value : (value >> i) & 1;
                    if ((group.first + i) / 32 == word) found |= uint64_t{on} << (group.first + i) % 32;
                }
            }
            return static_cast<uint32_t>(found);
        }

    private:
        // Of one sample, or of one in each lane.
        template <class Word>
        static Word pattern(const InputGroup& group, const Word* words) {
            if (group.one_on) return place_of_one(group, words);
            const int word = group.first / 32, shift = group.first % 32;
            Word found = words[word] >> shift;
            if (shift + group.inputs > 32) found |= words[word + 1] << (32 - shift);
            return found & ((1u << group.inputs) - 1u);
        }

        static uint32_t place_of_one(const InputGroup& group, const uint32_t* words) {
            for (int w = 0; w * 32 < group.inputs; ++w) {
                const int kept = group.inputs - w * 32;
                const uint32_t found = kept < 32 ? words[w] & ((1u << kept) - 1u) : words[w];
                if (found != 0) return w * 32 + std::countr_zero(found);
            }
            return 0;
        }

        static vu place_of_one(const InputGroup& group, const vu* words) {
            vu places{};
            for (int w = (group.inputs + 31) / 32; w-- > 0;) {
                const int kept = group.inputs - w * 32;
                const vu found = kept < 32 ? words[w] & ((1u << kept) - 1u) : words[w];
                for (int lane = 0; lane < LANES; ++lane) {
                    if (found[lane] != 0) places[lane] = w * 32 + std::countr_zero(uint32_t{found[lane]});
                }
            }
            return places;
        }

        std::vector<InputGroup> groups_;
        std::vector<uint16_t> rows_;  // [sample][group]
        std::vector<vu> words_;       // those drawn last
    };
};

// A block of samples, and which units are active.
struct TableBlock : Samples<UnitsByTable> {
    size_t most;                   // samples it has room for: whole registers of them
    std::vector<uint32_t> active;  // tile after tile, of each sample a bit for each unit

    explicit TableBlock(const Config& config)
        : Samples(config),
          most(std::min<int64_t>(UnitsByTable::BLOCK, std::max({int64_t{config.batch}, config.eval_size, config.sample}) + 15) / 16 * 16),
          active((config.width + 15) / 16 * most) {}
};

}  // namespace paritylab::PARITYLAB_ISA
