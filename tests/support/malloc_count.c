/* Preloaded into a program, it counts what the program asks the C library's allocator and the kernel for: calls of
 * malloc, calloc, realloc, the aligned kinds and mmap, plugins included. At exit the total is written, as decimal text,
 * to the file named by MALLOC_COUNT_FILE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_ullong count;

/* glibc's own names for its allocator: no dlsym, which itself allocates, is needed to reach them. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t items, size_t bytes);
extern void *__libc_realloc(void *at, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static void one_more(void) {
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

void *malloc(size_t bytes) {
    one_more();
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes) {
    one_more();
    return __libc_calloc(items, bytes);
}

void *realloc(void *at, size_t bytes) {
    one_more();
    return __libc_realloc(at, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    one_more();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *at = memalign(alignment, bytes);
    if (!at) return ENOMEM;
    *out = at;
    return 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    one_more();
    return next(at, bytes, protection, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(at, bytes, protection, flags, file, offset);
}

__attribute__((destructor)) static void tell(void) {
    const unsigned long long total = atomic_load(&count);
    const char *path = getenv("MALLOC_COUNT_FILE");
    char text[32];
    int length, file;
    if (!path || (file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0) return;
    length = snprintf(text, sizeof text, "%llu\n", total);
    if (write(file, text, (size_t)length) != length) unlink(path); /* no count is better than half of one */
    close(file);
}
