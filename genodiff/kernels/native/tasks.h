/* Tasks divided over threads, each thread with scratch space of its own. */

/* Does task(s, i, own) for i from 0 on, `tasks` times; own points to `bytes` at a line of the cache. Returns 1 where there was no memory for it. */
static int tasks_run(void (*task)(const void *s, int64_t i, void *own), const void *s, int64_t tasks, size_t bytes, int threads) {
    int failed = 0;
#pragma omp parallel num_threads(threads)
    {
        void *own = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : 0;
        if (bytes && !own) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp barrier
        int skip;
#pragma omp atomic read
        skip = failed;
        if (!skip) {
#pragma omp for schedule(dynamic, 1)
            for (int64_t i = 0; i < tasks; i++) task(s, i, own);
        }
        free(own);
    }
    return failed;
}
