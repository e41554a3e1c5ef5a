/* For LD_PRELOAD: NVIDIA's control file may not be opened, as in a container that has lost its GPU. Root may open
 * everything else, so that no file's permissions do this in a test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

static int forbidden(const char *path) {
    size_t length = strlen(path), wanted = strlen("/nvidiactl");
    return length >= wanted && strcmp(path + length - wanted, "/nvidiactl") == 0;
}

#define OPEN(NAME)                                                     \
    int NAME(const char *path, int flags, ...) {                       \
        va_list list;                                                  \
        va_start(list, flags);                                         \
        mode_t mode = va_arg(list, mode_t);                            \
        va_end(list);                                                  \
        if (forbidden(path)) {                                         \
            errno = EPERM;                                             \
            return -1;                                                 \
        }                                                              \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #NAME); \
        return real(path, flags, mode);                                \
    }

OPEN(open)
OPEN(open64)
