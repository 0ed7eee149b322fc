/* Tasks divided over threads, each thread with scratch space of its own.

   The threads are those of the OpenMP library that torch has loaded. Python hands over its function
   GOMP_parallel, so no OpenMP is linked here: a second one beside torch's would have threads of its
   own. Where torch has none, they are POSIX threads that live for a call. Which thread takes a task
   changes from run to run; the result does not, for a task writes what no other task writes. */
#include <pthread.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef void task(const void *s, int64_t i, void *own, int backward);

typedef struct {
    task *task;
    const void *s;
    int backward;
    int64_t count, next, arrived;
    char *scratch;
    size_t bytes;
} tasks;

/* Take the next task until none is left. Tasks are not dealt out beforehand: on a machine with
   other work, all would wait for the thread that is interrupted. The counters order no other
   memory, so relaxed atomics do; the end of the parallel region is what makes the results visible.
   */
static void tasks_work(void *given) {
    tasks *t = given;
    void *own = t->scratch + __atomic_fetch_add(&t->arrived, 1, __ATOMIC_RELAXED) * t->bytes;
    for (int64_t i; (i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->count;)
        t->task(t->s, i, own, t->backward);
}

/* GOMP_parallel: runs work(data) once in each of `threads` threads; flags are 0. GNU's OpenMP and
   LLVM's both have it. */
typedef void parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags);
static parallel *openmp;

#define MOST_HELPERS 256
static void *tasks_help(void *t) {
    tasks_work(t);
    return 0;
}
static void tasks_divide(tasks *t, int threads) {
    if (openmp) {
        openmp(tasks_work, t, threads, 0);
        return;
    }
    pthread_t helper[MOST_HELPERS];
    int helpers = 0;
    while (helpers < MOST_HELPERS && helpers + 1 < threads &&
           !pthread_create(&helper[helpers], 0, tasks_help, t))
        helpers++;
    tasks_work(t);
    while (helpers) pthread_join(helper[--helpers], 0);
}

/* Run task(s, i, own, backward) for each i below `count`. `own` points to `bytes` of the thread's
   own, from a line of the cache on and to the end of one: threads that write do not share a line.
   Returns 1 if there is no memory for them. */
static int tasks_run(task *task, const void *s, int64_t count, size_t bytes, int backward,
                     int threads) {
    tasks t = {task, s, backward, count, .bytes = (bytes + 63) / 64 * 64};
    threads = threads < count ? threads : count > 0 ? (int)count : 1;
    if (bytes && !(t.scratch = aligned_alloc(64, t.bytes * threads))) return 1;
    tasks_divide(&t, threads);
    free(t.scratch);
    return 0;
}
