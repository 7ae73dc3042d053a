/* The kernel as a small C library: one configuration, its runs, their records.
 *
 * It uses one thread, no files and no exceptions. What cannot be trained is refused with a line of text, and nothing is
 * changed then; only memory that cannot be had ends the process. Pointers are read during the call and not kept.
 * It trains parities of uniform inputs; other problems are for the Python module.
 * A run follows the rules of docs/explanation/engines.md, so its record is that of paritylab's engine `lanes`.
 */
#ifndef PARITYLAB_H
#define PARITYLAB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PARITYLAB_MLP, PARITYLAB_NEURON, PARITYLAB_POLYNET };
enum {
    PARITYLAB_CLIP,       /* upper; infinity for ReLU */
    PARITYLAB_POWER,      /* exponent */
    PARITYLAB_ZIGZAG,     /* k */
    PARITYLAB_TRIANGLE,   /* k */
    PARITYLAB_POLYNOMIAL, /* coefficients, constant first */
    PARITYLAB_SINUSOID,   /* scale, degree */
    PARITYLAB_GELU
};
enum {
    PARITYLAB_HINGE,    /* margin */
    PARITYLAB_SQUARE,
    PARITYLAB_LOGISTIC, /* scale */
    PARITYLAB_CORRELATION,
    PARITYLAB_L1
};
enum {
    PARITYLAB_SGD,
    PARITYLAB_MOMENTUM, /* mu, 1 for Nesterov's */
    PARITYLAB_ADAM,     /* b1, b2, eps */
    PARITYLAB_RMSPROP,  /* alpha, eps, mu */
    PARITYLAB_SIGN      /* b1, b2: 0 without memory */
};
enum { PARITYLAB_SOLVED, PARITYLAB_CENSORED, PARITYLAB_DIVERGED };
enum { PARITYLAB_RUNS_IN_LANES, PARITYLAB_UNITS_IN_LANES, PARITYLAB_DEEP, PARITYLAB_BY_SHAPE };

typedef struct {
    const float* data;
    int64_t count;
} paritylab_floats;

/* What all runs have in common. */
typedef struct {
    int32_t family;
    int32_t inputs;
    int32_t layers;        /* hidden ones: 1 but for an MLP */
    const int32_t* widths; /* their units, from the inputs up; a PolyNet's degree, 1 for a neuron */
    int32_t bias;          /* 0: b and c stay 0; 1: all move; 2: all but c, which stays 0 */
    int32_t activation;
    paritylab_floats activation_params;
    int32_t loss;
    paritylab_floats loss_params;
    int32_t batch;
    paritylab_floats schedule; /* empty, or what the learning rate is multiplied by at each step */
    paritylab_floats rates;    /* the same for each layer: layers + 1 of them */
    float decay_coupled, decay_plain;
    int64_t sample; /* 0: fresh inputs every step */
    int32_t replacement;
    int64_t eval_every, eval_size;
    int32_t eval_fresh;
    int64_t allowed_errors;
    int32_t consecutive;
    int32_t layout; /* PARITYLAB_BY_SHAPE, or one of the others */
    int32_t rule;   /* PARITYLAB_SGD, or one of the others */
    paritylab_floats rule_params;
    float clip;           /* the largest norm of a gradient; 0: any */
    float decay_gradient; /* times theta, added to the gradient */
} paritylab_config;

/* Weights of one run: W layer after layer, each (inputs, units) row by row; b of all units; u and c of an MLP's head. */
typedef struct {
    float *W, *b, *u, *c;
} paritylab_weights;

typedef struct {
    int64_t tag; /* the caller's number for it */
    uint32_t key[2];
    float lr, noise;
    uint32_t flip; /* a label is flipped when its random word is below this */
    int64_t max_steps;
    const uint32_t* mask; /* the parity's support: bit j mod 32 of word j div 32 */
    paritylab_weights start;
} paritylab_run;

typedef struct {
    int64_t tag;
    int32_t status;
    int64_t t_c; /* -1 unless solved */
    int64_t steps;
    double accuracy, loss;
} paritylab_record;

typedef struct paritylab_pool paritylab_pool;

/* The instruction sets this machine can run, best first; null past the last. */
const char* paritylab_isa(int32_t index);

/* Why this cannot be trained, or null. */
const char* paritylab_refusal(const paritylab_config* config);

/* A pool without runs, on the instruction set of this name or the best one if it is null; null if refused. */
paritylab_pool* paritylab_start(const paritylab_config* config, const char* isa);
void paritylab_end(paritylab_pool* pool);

/* Adds a run to those that wait; null, or why it is refused. */
const char* paritylab_add(paritylab_pool* pool, const paritylab_run* run);

/* Trains for this long, or until all runs are done; says how many are not. */
int64_t paritylab_advance(paritylab_pool* pool, double seconds);

/* The record of a run that is done, and its final weights where there is room for them; 0 when there is none. */
int32_t paritylab_take(paritylab_pool* pool, paritylab_record* record, const paritylab_weights* room);

/* The weights of a run as they are now; says how many steps it has made, or -1 if it waits, is done or unknown. */
int64_t paritylab_look(paritylab_pool* pool, int64_t tag, const paritylab_weights* room);

#ifdef __cplusplus
}
#endif

#endif
