/* The kernel as a small C library: one configuration, its runs, their records.
 *
 * It uses one thread, no files and no exceptions. What cannot be trained is refused with a line of text, and nothing is
 * changed then; only memory that cannot be had ends the process. Pointers are read during the call and not kept.
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
    PARITYLAB_L1,
    PARITYLAB_CLIPPED_LOGISTIC /* the least and the most that it is */
};
enum {
    PARITYLAB_SGD,
    PARITYLAB_MOMENTUM, /* mu, 1 for Nesterov's */
    PARITYLAB_ADAM,     /* b1, b2, eps */
    PARITYLAB_RMSPROP,  /* alpha, eps, mu */
    PARITYLAB_SIGN      /* b1, b2: 0 without memory */
};
enum { PARITYLAB_SOLVED, PARITYLAB_CENSORED, PARITYLAB_DIVERGED, PARITYLAB_TRAINING };
enum { PARITYLAB_RUNS_IN_LANES, PARITYLAB_UNITS_IN_LANES, PARITYLAB_DEEP, PARITYLAB_LOOKED_UP,
       PARITYLAB_SAMPLES /* for ReLU and a loss with slopes of one size */, PARITYLAB_BY_SHAPE };

enum { PARITYLAB_PRODUCT, PARITYLAB_SUM, PARITYLAB_TABLE, PARITYLAB_TASKS };

typedef struct {
    const float* data;
    int64_t count;
} paritylab_floats;
typedef struct {
    const uint32_t* data;
    int64_t count;
} paritylab_words;
typedef struct {
    const int64_t* data;
    int64_t count;
} paritylab_wholes;

/* What is learned where it is not a parity of uniform inputs, in the words of problem.h. Masks are bits, as a run's.
 * Components and what belongs to them come law after law. */
typedef struct {
    int32_t stride;               /* random numbers of an example */
    int64_t leak;                 /* of 2^31: how often all inputs of the support are equal; -1: they are independent */
    paritylab_wholes components;  /* of each law, how many */
    paritylab_wholes uniform;     /* of each law, 1 if its inputs are the random words themselves */
    paritylab_words cumulative;   /* thresholds between the components of a law */
    paritylab_words planes;       /* [component][16 digits][word] */
    paritylab_words always;       /* [component][word]: inputs that are always -1 */
    paritylab_wholes copied;      /* of each component, how many copies */
    paritylab_words copies;       /* [copy]: i, j; x_j is multiplied by x_i */
    int32_t law, evaluation_law;  /* after the last stage, and of evaluation */
    paritylab_wholes stages;      /* [stage]: until, law, next law, flip or -1, batch */
    int32_t target;               /* PARITYLAB_PRODUCT of the run's own mask, or one of the others */
    float scale;
    paritylab_floats coefficients;
    paritylab_words terms;        /* [term][word] */
    int32_t sign;                 /* 1: the target is the sum's sign */
    paritylab_wholes places;      /* the inputs that make an index */
    paritylab_words table;        /* a bit for each index, set where the value is -1 */
    paritylab_words task_cumulative, task_masks; /* [task][word] */
    paritylab_wholes task_allowed; /* errors of each; -1: it is not judged */
    paritylab_words task_controls; /* [task][word]: its control bits; empty: input t of task t */
    int32_t in_turn;               /* 1: example e is of task e mod T; 0: tasks are drawn */
} paritylab_problem;

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
    const paritylab_problem* problem; /* null: parities of uniform inputs */
    int32_t short_last;               /* 1: each pass over the sample ends with a batch of what is left */
    float within;                     /* an output is right if it is so close to its label; -1: if it has its sign */
    int32_t bits;                     /* 1: inputs of +1 and -1 are read as 0 and 1 */
    int32_t skips_satisfied;          /* 1: a batch whose gradient is exactly 0 moves nothing */
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

enum {
    PARITYLAB_UNIFORM_START, /* U(-1, 1) */
    PARITYLAB_SIGNS,         /* -1 or 1 */
    PARITYLAB_NORMAL,        /* N(0, 1) */
    PARITYLAB_NEAR_SIGNS,    /* a sign plus N(0, s^2): s */
    PARITYLAB_WIDE_SIGNS,    /* a sign plus U(-w, w): w */
    PARITYLAB_FEW_SIGNS,     /* a sign, or 0: its chance */
    PARITYLAB_POINTS,        /* one of these */
    PARITYLAB_SPHERE,        /* a unit's weights uniform on the unit sphere */
    PARITYLAB_TILTED_SIGNS   /* 1 or -1: the chance of 1 */
};

/* The laws of start weights, as setups/inits.py has them. */
typedef struct {
    int32_t hidden, output; /* kinds, of the hidden layers and of the head */
    paritylab_floats hidden_params, output_params;
    paritylab_floats scales; /* of each layer, the head included */
    int32_t biased;          /* 0: biases start at 0 */
    int32_t mirrored;        /* 1: units of the last hidden layer in pairs of opposite output */
} paritylab_law;

typedef struct paritylab_pool paritylab_pool;

/* The instruction sets this machine can run, best first; null past the last. */
const char* paritylab_isa(int32_t index);

/* Why this cannot be trained, or null. */
const char* paritylab_refusal(const paritylab_config* config);

/* A pool without runs, on the instruction set of this name or the best one if it is null; null if refused. */
paritylab_pool* paritylab_start(const paritylab_config* config, const char* isa);
void paritylab_end(paritylab_pool* pool);

/* How many runs it trains at a time: its slots. Others wait. */
int32_t paritylab_slots(paritylab_pool* pool);

/* Adds a run to those that wait; null, or why it is refused. */
const char* paritylab_add(paritylab_pool* pool, const paritylab_run* run);

/* Draws the start weights of a run whose stream for them has this key; null, or why it is refused. */
const char* paritylab_draw(paritylab_pool* pool, const paritylab_law* law, const uint32_t key[2],
                           const paritylab_weights* room);

/* Trains for this long, or until all runs are done; says how many are not. */
int64_t paritylab_advance(paritylab_pool* pool, double seconds);

/* Gives every run with a slot this many steps; says how many runs are not done. */
int64_t paritylab_train(paritylab_pool* pool, int64_t steps);

/* Moves one run, as it is, to a free slot of a pool of the same configuration, so that no slots stay empty; says its tag,
 * or -1: there is no run, no room, or an optimiser that remembers. */
int64_t paritylab_move(paritylab_pool* from, paritylab_pool* to);

/* The record of a run that is done, and its final weights where there is room for them; 0 when there is none. */
int32_t paritylab_take(paritylab_pool* pool, paritylab_record* record, const paritylab_weights* room);

/* The weights of a run as they are now; says how many steps it has made, or -1 if it waits, is done or unknown. */
int64_t paritylab_look(paritylab_pool* pool, int64_t tag, const paritylab_weights* room);

/* How the runs with a slot do on the first so many inputs that they are judged on, or of their finite sample: at most 16
 * records, of status PARITYLAB_TRAINING. Says how many. */
int32_t paritylab_survey(paritylab_pool* pool, int64_t examples, int32_t of_sample, paritylab_record* records);

#ifdef __cplusplus
}
#endif

#endif
