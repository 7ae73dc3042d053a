// Loss functions of the output f and the label y = +-1: the value, and the slope with respect to f.
#pragma once

#include "config.h"
#include "elementary.h"

namespace paritylab::PARITYLAB_ISA {

struct Hinge {
    float beta;
    vf value(vf f, vf y) const { return at_least(beta - y * f, vf{}); }
    vf slope(vf f, vf y) const { return select(y * f < beta, -y, vf{}); }
};

struct Square {
    vf value(vf f, vf y) const { return (y - f) * (y - f); }
    vf slope(vf f, vf y) const { return 2.0f * (f - y); }
};

// scale log(1 + e^-m) with m = y f, from e^-|m|, which cannot overflow.
struct Logistic {
    float scale;
    vf value(vf f, vf y) const {
        const vf m = y * f;
        return scale * (at_least(-m, vf{}) + log_of_positive(1.0f + exp_of_negative(-absolute(m))));
    }
    vf slope(vf f, vf y) const {
        const vf m = y * f;
        const vf e = exp_of_negative(-absolute(m));
        return -scale * y * select(m < 0.0f, broadcast(1.0f), e) / (1.0f + e);
    }
};

// The logistic loss between two bounds, flat at and beyond either. It matters when it is small: its logarithm is that of
// 1 + e, of which the sum has lost digits, times e over what is left of e.
struct ClippedLogistic {
    float least, most;
    vf unclipped(vf m, vf e) const {
        const vf sum = 1.0f + e, left = sum - 1.0f;
        const vf log = select(left == 0.0f, e, log_of_positive(sum) * (e / left));
        return at_least(-m, vf{}) + log;
    }
    vf value(vf f, vf y) const {
        const vf m = y * f;
        return at_most(at_least(unclipped(m, exp_of_negative(-absolute(m))), broadcast(least)), broadcast(most));
    }
    vf slope(vf f, vf y) const {
        const vf m = y * f, e = exp_of_negative(-absolute(m)), loss = unclipped(m, e);
        const vf slope = -y * select(m < 0.0f, broadcast(1.0f), e) / (1.0f + e);
        return select((loss <= least) | (loss >= most), vf{}, slope);
    }
};

struct Correlation {
    vf value(vf f, vf y) const { return -(y * f); }
    vf slope(vf, vf y) const { return -y; }
};

struct L1 {
    vf value(vf f, vf y) const { return absolute(y - f); }
    vf slope(vf f, vf y) const {
        const vf side = select(f > y, broadcast(1.0f), broadcast(-1.0f));
        return select(f == y, vf{}, select(f == f, side, f));
    }
};

template <class Work>
PARITYLAB_INLINE void with_loss(const Config& config, Work&& work) {
    const std::vector<float>& p = config.loss_params;
    switch (config.loss) {
        case Loss::hinge: return work(Hinge{p[0]});
        case Loss::square: return work(Square{});
        case Loss::logistic: return work(Logistic{p[0]});
        case Loss::correlation: return work(Correlation{});
        case Loss::l1: return work(L1{});
        case Loss::clipped_logistic:
#if !defined(__wasm__)  // no page has it
            return work(ClippedLogistic{p[0], p[1]});
#endif
            break;
    }
}

}  // namespace paritylab::PARITYLAB_ISA
