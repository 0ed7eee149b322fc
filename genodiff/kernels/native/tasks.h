/* Tasks divided over threads, each thread with scratch space of its own. The threads are OpenMP's, which torch keeps at hand, or, where
   the compiler has no OpenMP (Apple's), POSIX threads that live for a call. */

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

/* Takes the next task until none is left. */
static void tasks_work(tasks *t) {
    void *own = t->scratch + __atomic_fetch_add(&t->arrived, 1, __ATOMIC_RELAXED) * t->bytes;
    for (int64_t i; (i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->count;) t->task(t->s, i, own, t->backward);
}

#ifdef _OPENMP
static void tasks_divide(tasks *t, int threads) {
#pragma omp parallel num_threads(threads)
    tasks_work(t);
}
#else
#include <pthread.h>
#define MOST_HELPERS 256
static void *tasks_help(void *t) {
    tasks_work(t);
    return 0;
}
static void tasks_divide(tasks *t, int threads) {
    pthread_t helper[MOST_HELPERS];
    int helpers = 0;
    while (helpers < MOST_HELPERS && helpers + 1 < threads && !pthread_create(&helper[helpers], 0, tasks_help, t)) helpers++;
    tasks_work(t);
    while (helpers) pthread_join(helper[--helpers], 0);
}
#endif

/* Does task(s, i, own, backward) for each i below `count`; own points to `bytes` at a line of the cache. Returns 1 where there is no memory
   for them. */
static int tasks_run(task *task, const void *s, int64_t count, size_t bytes, int backward, int threads) {
    tasks t = {task, s, backward, count, .bytes = (bytes + 63) / 64 * 64};
    threads = threads < count ? threads : count > 0 ? (int)count : 1;
    if (bytes && !(t.scratch = aligned_alloc(64, t.bytes * threads))) return 1;
    tasks_divide(&t, threads);
    free(t.scratch);
    return 0;
}
