/* Tasks divided over threads, each thread with scratch space of its own. The threads are OpenMP's, which torch keeps at hand, or, where
   the compiler has no OpenMP (Apple's), POSIX threads that live for a call. */

typedef struct {
    void (*task)(const void *s, int64_t i, void *own);
    const void *s;
    int64_t count, next;
    size_t bytes;
} tasks;

/* Takes the next task until none is left; a thread that gets no scratch space leaves them to the others. */
static void tasks_work(tasks *t) {
    void *own = t->bytes ? aligned_alloc(64, (t->bytes + 63) / 64 * 64) : 0;
    if (t->bytes && !own) return;
    for (int64_t i; (i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->count;) t->task(t->s, i, own);
    free(own);
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
    while (helpers < MOST_HELPERS && helpers + 1 < threads && helpers + 1 < t->count && !pthread_create(&helper[helpers], 0, tasks_help, t)) helpers++;
    tasks_work(t);
    while (helpers) pthread_join(helper[--helpers], 0);
}
#endif

/* Does task(s, i, own) for each i below `count`; own points to `bytes` at a line of the cache. Returns 1 where no thread got memory. */
static int tasks_run(void (*task)(const void *s, int64_t i, void *own), const void *s, int64_t count, size_t bytes, int threads) {
    tasks t = {task, s, count, 0, bytes};
    tasks_divide(&t, threads);
    return t.next < count;
}
