// Networks with one layer of units, one run at a time, samples in the lanes: the way forward of all, and the way back of
// those whose gradient is counted.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "heads.h"
#include "losses.h"
#include "pairs.h"

namespace paritylab::PARITYLAB_ISA {

// What becomes of the sums of a few registers of samples: sum_i u_i relu(z_i), even units and odd units apart. With MARKS it is
// also said in which samples each unit is active: of every 32 samples and pair of units two words.
template <int SAMPLES, bool MARKS>
struct ReluHead {
    static constexpr bool TRAINS = MARKS;
    const float* u;
    uint64_t* active;
    int shift;  // of the first sample among the 32
    vf sums[2][SAMPLES]{};

    PARITYLAB_INLINE void take(int pair, const vf (&z)[2][SAMPLES]) {
#pragma GCC unroll 16
        for (int i = 0; i < 2 * SAMPLES; ++i) {
            vf& sum = sums[i / SAMPLES][i % SAMPLES];
            sum = fma_from(u[2 * pair + i / SAMPLES], at_least(z[i / SAMPLES][i % SAMPLES], vf{}), sum);
        }
        if (!MARKS) return;
        const uint64_t on = positive_bits_of(z);
        if constexpr (TOGETHER_SAMPLES * LANES == WORD) {
            active[pair] = on;
        } else {
            active[pair] = shift == 0 ? on : active[pair] | on << shift;
        }
    }
};

// The sums as they are.
template <int SAMPLES>
struct KeepHead {
    static constexpr bool TRAINS = false;
    vf* z;  // [pair][unit][register]

    PARITYLAB_INLINE void take(int pair, const vf (&sums)[2][SAMPLES]) {
        for (int i = 0; i < 2 * SAMPLES; ++i) z[2 * SAMPLES * pair + i] = sums[i / SAMPLES][i % SAMPLES];
    }
};

class PairForward : public PairWeights {
public:
    using Layout = SamplesInLanes;
    using Block = Samples<SamplesInLanes>;

    explicit PairForward(const Config& config, bool moves = false)
        : PairWeights(config, moves),
          words_((shape_.inputs + THIRTY - 1) / THIRTY),
          relu_(config.family == Family::mlp && config.activation == Activation::clip && std::isinf(config.activation_params[0])),
          unpacked_(static_cast<size_t>(words_) * (THIRTY / FIVE) * TOGETHER_SAMPLES),
          z_(static_cast<size_t>(2) * shape_.pairs * TOGETHER_SAMPLES),
          middle_(config.bits ? static_cast<size_t>(2) * shape_.pairs : 0) {}

    // The outputs.
    void look(Block& block) {
        if (config_.bits) find_middle();
        relu_ ? through_relu<false>(block, nullptr) : through_others(block);
    }

protected:
    static constexpr int CHUNK = TOGETHER_SAMPLES * LANES;

    template <bool MARKS>
    [[gnu::noinline]] void through_relu(Block& block, uint64_t* active) {
        const auto go = [&](auto count, int s) __attribute__((always_inline)) {
            ReluHead<count, MARKS> head{theta_.outputs(), MARKS ? active + static_cast<size_t>(s / WORD) * shape_.pairs : nullptr, s % WORD};
            sums<count>(block, s, head);
            for (int r = 0; r < count; ++r) block.f[s / LANES + r] = theta_.c + (head.sums[0][r] + head.sums[1][r]);
        };
        for (int s = 0; s < block.count; s += CHUNK) {
            if constexpr (TOGETHER_SAMPLES > 1 && !SMALL) {
                if (block.count - s <= LANES) {
                    go(std::integral_constant<int, 1>{}, s);
                    continue;
                }
            }
            go(std::integral_constant<int, TOGETHER_SAMPLES>{}, s);
        }
    }

private:
    void through_others(Block& block) {
        for (int s = 0; s < block.count; s += CHUNK) {
            KeepHead<TOGETHER_SAMPLES> head{z_.data()};
            sums<TOGETHER_SAMPLES>(block, s, head);
            for (int r = 0; r < TOGETHER_SAMPLES; ++r) block.f[s / LANES + r] = output(r);
        }
    }

    vf z_of(int unit, int r) const { return z_[unit * TOGETHER_SAMPLES + r]; }

    // From the sums that were kept, for a register of samples.
    vf output(int r) const {
        vf result{};
        if (config_.family == Family::polynet) {  // prod_i z_i
            result = broadcast(1.0f);
            for (int unit = 0; unit < shape_.width; ++unit) result *= z_of(unit, r);
            return result;
        }
        with_activation(config_, [&](const auto& act) {
            if (config_.family == Family::neuron) {  // sigma(z_0)
                result = act.value(z_of(0, r));
                return;
            }
            vf sums[2]{};
            for (int unit = 0; unit < shape_.width; ++unit) {
                sums[unit % 2] = fma_from(theta_.outputs()[unit], act.value(z_of(unit, r)), sums[unit % 2]);
            }
            result = theta_.c + (sums[0] + sums[1]);
        });
        return result;
    }

    // Gives the sums of SAMPLES registers of samples from s on to the head.
    template <int SAMPLES, class Head>
    PARITYLAB_INLINE void sums(const Block& block, int s, Head& head) {
        const bool thirty = shape_.fives == THIRTY / FIVE;
        if constexpr (!SMALL) {
            if (thirty && shape_.pairs <= TOGETHER_PAIRS) {  // then none of the fives is needed twice
                const OneWord<SAMPLES> five(block.inputs, s, std::make_integer_sequence<int, SAMPLES>{});
                return tile_of<TOGETHER_PAIRS, SAMPLES>(shape_.pairs, five, Six{}, Stride{}, head, 0);
            }
        }
        for (int word = 0; word < words_; ++word) {
            for (int r = 0; r < SAMPLES; ++r) {
                const Thirty bits = block.inputs.thirty(s, word, r);
                each_of_six([&](auto i) __attribute__((always_inline)) {
                    unpacked_[(word * (THIRTY / FIVE) + i) * SAMPLES + r] = Five(bits, std::integral_constant<int, FIVE * i>{});
                });
            }
        }
        const Unpacked<SAMPLES> five{unpacked_.data()};
        const int count = (shape_.pairs + TOGETHER_PAIRS - 1) / TOGETHER_PAIRS;
        for (int i = 0; i < count; ++i) {
            const int first = start_of_part(shape_.pairs, count, i), pairs = start_of_part(shape_.pairs, count, i + 1) - first;
            if constexpr (!SMALL) {
                if (thirty) {
                    tile_of<TOGETHER_PAIRS, SAMPLES>(pairs, five, Six{}, Stride{}, head, first);
                    continue;
                }
            }
            tile_of<TOGETHER_PAIRS, SAMPLES>(pairs, five, shape_.fives, static_cast<size_t>(shape_.stride()), head, first);
        }
    }

    using Six = std::integral_constant<int, THIRTY / FIVE>;
    using Stride = std::integral_constant<size_t, PairShape::STRIDE>;

    // What five inputs say: of the only word, made when asked for, or of those that were unpacked.
    template <int SAMPLES>
    struct OneWord {
        Thirty words[SAMPLES];
        template <int... R>
        PARITYLAB_INLINE OneWord(const SamplesInLanes::Inputs& inputs, int s, std::integer_sequence<int, R...>)
            : words{inputs.thirty(s, 0, R)...} {}
        template <int I>
        PARITYLAB_INLINE Five operator()(std::integral_constant<int, I>, int r) const {
            return Five(words[r], std::integral_constant<int, FIVE * I>{});
        }
    };
    template <int SAMPLES>
    struct Unpacked {
        const Five* fives;
        PARITYLAB_INLINE const Five& operator()(int i, int r) const { return fives[i * SAMPLES + r]; }
    };

    // A tile of so many pairs, which become a constant.
    template <int MOST, int SAMPLES, class Fives, class Count, class Step, class Head>
    PARITYLAB_INLINE void tile_of(int pairs, const Fives& five, Count fives, Step stride, Head& head, int first) {
        if (pairs == MOST) return tile<MOST, SAMPLES>(five, fives, stride, head, first);
        if constexpr (MOST > 1) tile_of<MOST - 1, SAMPLES>(pairs, five, fives, stride, head, first);
    }

    template <int PAIRS, int SAMPLES, class Fives, class Count, class Step, class Head>
    PARITYLAB_INLINE void tile(const Fives& five, Count fives, Step stride, Head& head, int first) {
        const float* w = theta_.weights() + first * static_cast<size_t>(stride);
        const bool bits = !Head::TRAINS && config_.bits;
        vf z[PAIRS][2][SAMPLES];
#pragma GCC unroll 16
        for (int p = 0; p < PAIRS; ++p) {
#pragma GCC unroll 16
            for (int i = 0; i < 2 * SAMPLES; ++i) {
                z[p][i / SAMPLES][i % SAMPLES] = bits ? vf{} : broadcast_from(w[p * stride + 2 * FIVE * fives + i / SAMPLES]);
            }
        }
        add_fives(five, fives, w, stride, z);
        if (bits) {
#pragma GCC unroll 32
            for (int i = 0; i < PAIRS * 2 * SAMPLES; ++i) {
                vf& sum = z[i / (2 * SAMPLES)][i / SAMPLES % 2][i % SAMPLES];
                sum = fma(broadcast(-0.5f), sum, broadcast(middle_[2 * first + i / SAMPLES]));
            }
        }
        Head mine = head;  // in registers
#pragma GCC unroll 16
        for (int p = 0; p < PAIRS; ++p) mine.take(first + p, z[p]);
        head = mine;
    }

    // Inputs as bits are (1 - x) / 2: a unit's z is what it is where half of them are on, less half the sum over signs.
    void find_middle() {
        for (int p = 0; p < shape_.pairs; ++p) {
            PairSum sum;
            for (int i = 0; i < shape_.registers(); ++i) sum.add(i, theta_.W[shape_.first(p) + i], broadcast(0.5f));
            const vf half = sum.total();
            for (int unit = 0; unit < 2; ++unit) {
                const float bias = theta_.weights()[static_cast<size_t>(p) * shape_.stride() + 2 * shape_.bias + unit];
                middle_[2 * p + unit] = half[unit] + 0.5f * bias;
            }
        }
    }

    int words_;                   // of thirty inputs
    bool relu_;
    std::vector<Five> unpacked_;  // of a few registers of samples: [five inputs][register]
    std::vector<vf> z_;           // of those: [unit][register]
    std::vector<float> middle_;
};

class PairNetwork : public PairForward {
public:
    static constexpr bool FUSES = false;
    static constexpr bool SHALLOW = false;
    static constexpr bool DRAWS_AHEAD = true;

    explicit PairNetwork(const Config& config)
        : PairForward(config, true),
          counts_(config, shape_.pairs, shape_.octets, std::min(config.batch + WORD - 1, SamplesInLanes::BLOCK) / WORD),
          compared_(shape_.registers()) {
        if (config.plain() && config.batch > SamplesInLanes::BLOCK) gradient_ = PairNumbers(shape_);
    }

    void forward(Block& block) {
        for (int s = 0; s < block.count; s += WORD) counts_.put(block.inputs, s);
        through_relu<true>(block, counts_.active.data());
    }

    // Adds the block to the batch's gradient; the last block also moves the parameters.
    void backward(Block& block, BatchPart part, vf lr) {
        const Update hidden = make_update(config_, lr, config_.rates[0]), head = make_update(config_, lr, config_.rates[1]);
        if (!part.first || !part.last) {
            accumulate(block, part.first);
            if (!part.last) return;
            for (size_t i = 0; i < theta_.W.size(); ++i) theta_.W[i] = hidden(theta_.W[i], gradient_.W[i]);
            for (size_t v = 0; v < theta_.u.size(); ++v) theta_.u[v] = head(theta_.u[v], gradient_.u[v]);
            if (config_.head_bias) theta_.c = head(theta_.c, gradient_.c);
            return;
        }
        const vf balance = compare(block);
        SMALL || hidden.decays ? move<true>(block, hidden, head) : move<false>(block, hidden, head);
        if (config_.head_bias) theta_.c = head(theta_.c, block.share * balance);
    }

    // Adds the block to the batch's gradient, for a rule that is not plain SGD.
    void accumulate(Block& block, bool first) {
        if (first) gradient_.clear();
        const vf balance = compare(block);
        each_pair(block, block.share, [&](size_t i, vf move, vf count) {
            gradient_.W[i] = fma(count, move, gradient_.W[i]);
            return theta_.W[i];
        }, [&](int unit, vf sums) {
            float* g = gradient_.outputs() + unit;
            store_pair(g, fma(block.share, sums, (vf)broadcast_pair(g)));
        });
        if (config_.head_bias) gradient_.c = fma(block.share, balance, gradient_.c);
    }

private:
    // What outputs and labels say of the block; returns the sum of the loss's slopes.
    PARITYLAB_INLINE vf compare(Block& block) {
        if (config_.loss == Loss::hinge) {
            const vf beta = broadcast(config_.loss_params[0]);
            return compare_by(block, [&](vf f, vf y, uint32_t& going, uint32_t& minus) __attribute__((always_inline)) {
                going = less_bits(y * f, beta), minus = less_bits(y, vf{});
            });
        }
        if (config_.loss == Loss::correlation) {
            return compare_by(block, [&](vf, vf y, uint32_t& going, uint32_t& minus) { going = ~0u, minus = less_bits(y, vf{}); });
        }
        vf wrong{};  // NaN where an output is
        const vf sum = compare_by(block, [&](vf f, vf y, uint32_t& going, uint32_t& minus) {
            going = to_bits(f != y), minus = less_bits(y, f);
            wrong += f * 0.0f;
        });
        float not_a_number = 0;
        for (int lane = 0; lane < LANES; ++lane) not_a_number += wrong[lane];
        return sum + broadcast(not_a_number);
    }

    template <class Slopes>
    PARITYLAB_INLINE vf compare_by(Block& block, const Slopes& slopes) {
        int sum = 0;
        for (int s = 0; s < block.count; s += WORD) {
            uint32_t going = 0, minus = 0;
#pragma GCC unroll 8
            for (int r = 0; r < REGISTERS_OF_WORD; ++r) {
                uint32_t going_here, minus_here;
                slopes(block.f[s / LANES + r], block.y[s / LANES + r], going_here, minus_here);
                going |= (going_here & ((1u << LANES) - 1)) << r * LANES, minus |= minus_here << r * LANES;
            }
            if (block.count - s < WORD) going &= (1u << (block.count - s)) - 1;
            sum += 2 * __builtin_popcount(going & minus) - __builtin_popcount(going);
            counts_.put(s, going, minus);
        }
        return broadcast(static_cast<float>(sum));
    }

    // W <- keep W + count (rate u), and u by what was there before.
    template <bool DECAYS>
    void move(const Block& block, const Update& update, const Update& head) {
        vf* W = theta_.W.data();
        float* u = theta_.outputs();
        const vf keep = update.keep, head_keep = head.keep, head_rate = head.rate * block.share;
        each_pair(block, -(update.rate * block.share), [=](size_t i, vf move, vf count) __attribute__((always_inline)) {
            const vf before = W[i];
            W[i] = fma(count, move, DECAYS ? before * keep : before);
            return before;
        }, [=](int unit, vf sums) __attribute__((always_inline)) {
            const vf before = (vf)broadcast_pair(u + unit);
            store_pair(u + unit, fma(-head_rate, sums, DECAYS ? before * head_keep : before));
        });
    }

    static void store_pair(float* to, vf numbers) { std::memcpy(to, &numbers, 2 * sizeof(float)); }

    // Calls take(register, scale u, count) for all weights; it returns the weight as it was, whose products with the counts
    // are summed for the gradient of u: finish(unit, sums) has those of two units.
    template <class Take, class Finish>
    PARITYLAB_INLINE void each_pair(const Block& block, vf scale, const Take& take, const Finish& finish) {
        const Counts::Block counts = counts_.block((block.count + WORD - 1) / WORD);
        if (SMALL || shape_.octets != OCTETS_OF_WORD) return pairs<0, false>(counts, scale, take, finish);
        counts.words == 1 ? pairs<OCTETS_OF_WORD, true>(counts, scale, take, finish)
                          : pairs<OCTETS_OF_WORD, false>(counts, scale, take, finish);
    }

    // So many octets of inputs, if it is known.
    template <int OCTETS, bool ONE_WORD, class Take, class Finish>
    void pairs(const Counts::Block& counts, vf scale, const Take& take, const Finish& finish) {
        constexpr int REGISTERS = (SMALL ? 2 : OCTETS_OF_WORD) * SETS;
        const int all = shape_.registers(), count = shape_.pairs;
        vu some[REGISTERS];
        vu* compared = OCTETS > 0 ? some : compared_.data();
        const vu minus = broadcast_pair(counts.slopes[0].minus);
        for (int i = 0; i < (OCTETS > 0 ? REGISTERS : all); ++i) compared[i] = counts.inputs[i] ^ minus;
        const size_t stride = OCTETS > 0 ? PairShape::STRIDE / LANES : shape_.stride() / LANES;
        const auto pair = [&, there = there_.data(), u = theta_.outputs()](int p) __attribute__((always_inline)) {
            const vf move = scale * (vf)broadcast_pair(u + 2 * p);
            PairSum sum;
            const auto add = [&](int i, vf counted, int place, bool whole) __attribute__((always_inline)) {
                if (!whole) counted = (vf)((vu)counted & there[place]);
                sum.add(i, take(p * stride + place, move, counted), counted);
            };
            vf counted[REGISTERS];
            int first = 0;
            for (; OCTETS > 0 ? first == 0 : first + REGISTERS <= all; first += REGISTERS) {
                Counts::count<REGISTERS, ONE_WORD>(counts, compared, p, first, counted);
#pragma GCC unroll 16
                for (int i = 0; i < REGISTERS; ++i) add(i, counted[i], first + i, OCTETS > 0 && i < REGISTERS - SETS);
            }
            if constexpr (OCTETS == 0) {
                for (int i = 0; first < all; first += SETS, i += SETS) {
                    vf octet[SETS];
                    Counts::count<SETS, ONE_WORD>(counts, compared, p, first, octet);
                    for (int s = 0; s < SETS; ++s) add(i + s, octet[s], first + s, false);
                }
            }
            return sum;
        };
        int p = 0;
        for (; p + 2 <= count; p += 2) {
            const PairSum one = pair(p), other = pair(p + 1);
            const vf sums = PairSum::totals(one, other);
            finish(2 * p, sums);
            finish(2 * p + 2, swap_halves(sums));
        }
        if (p < count) finish(2 * p, pair(p).total());
    }

    Counts counts_;
    std::vector<vu> compared_;  // inputs of the first 32 samples with their labels
};

}  // namespace paritylab::PARITYLAB_ISA
