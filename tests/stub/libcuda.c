/* A CUDA driver without a GPU, for tests: the functions that the probe calls, with answers from the environment.
 *
 *   STUB_DEVICES=2             how many devices there are; 1 without it
 *   STUB_VERSION=12040         the newest CUDA
 *   STUB_CAPABILITY=8.0,6.1    of each device; the last one stands for the rest, here and below
 *   STUB_MODE=0,3              compute modes
 *   STUB_TOTAL=40960,8192      memory in MiB
 *   STUB_FREE=20480            free memory in MiB
 *   STUB_PEERS=0               devices do not reach each other
 *   STUB_FAIL=cuInit=803,...   functions that return a code
 *   STUB_HANG=cuInit           a function that never returns
 *   STUB_CRASH=cuInit          a function that writes through a null pointer
 *   STUB_EXIT_HANG=1           the library hangs when the process ends
 *   STUB_ABORT=1               the library aborts when it is loaded
 *   STUB_WRONG=copy,kernel     results that are wrong
 *   STUB_LOG=FILE              every call, a line each; at the end, what was not given back
 *
 * CUDA_VISIBLE_DEVICES is honored as the real driver does, MIG instances aside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long address;

#define MAX_DEVICES 16
static int visible[MAX_DEVICES], visible_count, initialized;
static long contexts, allocations, modules;
static int current = -1;
static int handles[MAX_DEVICES];

static void note(const char *text) {
    const char *path = getenv("STUB_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

__attribute__((constructor)) static void loaded(void) {
    note("loaded");
    if (getenv("STUB_ABORT")) {
        abort();
    }
}

__attribute__((destructor)) static void unloaded(void) {
    char text[100];
    snprintf(text, sizeof text, "left: %ld contexts, %ld allocations, %ld modules", contexts, allocations, modules);
    note(text);
    if (getenv("STUB_EXIT_HANG")) {
        sleep(1000);
    }
}

/* The n-th element of a list; its last one if it is shorter. */
static const char *element(const char *variable, const char *otherwise, int n) {
    static char copy[64];
    const char *list = getenv(variable);
    list = list ? list : otherwise;
    for (const char *comma; n > 0 && (comma = strchr(list, ',')); n--) {
        list = comma + 1;
    }
    snprintf(copy, sizeof copy, "%s", list);
    copy[strcspn(copy, ",")] = 0;
    return copy;
}

static int listed(const char *variable, const char *word) {
    const char *list = getenv(variable);
    const char *at = list ? strstr(list, word) : NULL;
    char after = at ? at[strlen(word)] : 'x';
    return at && (after == 0 || after == ',' || after == '=');
}

static int begin(const char *function) {
    note(function);
    if (listed("STUB_HANG", function)) {
        sleep(1000);
    }
    if (listed("STUB_CRASH", function)) {
        *(volatile int *)NULL = 0;
    }
    if (listed("STUB_FAIL", function)) {
        return atoi(strstr(getenv("STUB_FAIL"), function) + strlen(function) + 1);
    }
    return 0;
}

#define BEGIN do { int code = begin(__func__); if (code) return code; } while (0)

static int physical_count(void) { return atoi(element("STUB_DEVICES", "1", 0)); }

static void uuid_of(int physical, unsigned char *bytes) {
    memset(bytes, 0x11, 16);
    bytes[0] = 0xa0 + physical;
}

static int by_uuid(const char *text) {
    int found = -1;
    for (int i = 0; i < physical_count(); i++) {
        char uuid[16];
        snprintf(uuid, sizeof uuid, "GPU-%02x111111", 0xa0 + i);
        if (strncmp(uuid, text, strlen(text)) == 0) {
            if (found >= 0) return -1;
            found = i;
        }
    }
    return found;
}

static void see(void) {
    int count = physical_count();
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    if (!value) {
        for (int i = 0; i < count; i++) visible[visible_count++] = i;
        return;
    }
    char copy[256];
    snprintf(copy, sizeof copy, "%s", value);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        char *end;
        long n = strncmp(word, "GPU-", 4) == 0 ? by_uuid(word) : strtol(word, &end, 10);
        if ((strncmp(word, "GPU-", 4) != 0 && end == word) || n < 0 || n >= count) return;
        for (int i = 0; i < visible_count; i++) {
            if (visible[i] == n) {
                visible_count = 0;
                return;
            }
        }
        visible[visible_count++] = (int)n;
    }
}

#ifndef WITHOUT_VERSION
int cuDriverGetVersion(int *version) {
    BEGIN;
    *version = atoi(element("STUB_VERSION", "12040", 0));
    return 0;
}
#endif

int cuInit(unsigned flags) {
    (void)flags;
    BEGIN;
    see();
    initialized = 1;
    return visible_count ? 0 : 100;
}

int cuDeviceGetCount(int *count) {
    BEGIN;
    if (!initialized) return 3;
    *count = visible_count;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    BEGIN;
    if (ordinal < 0 || ordinal >= visible_count) return 101;
    *device = visible[ordinal];
    return 0;
}

int cuDeviceGetName(char *name, int length, int device) {
    BEGIN;
    snprintf(name, length, "Stub GPU %d", device);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    BEGIN;
    uuid_of(device, uuid);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    BEGIN;
    *bytes = (size_t)atol(element("STUB_TOTAL", "40960", device)) << 20;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    BEGIN;
    const char *capability = element("STUB_CAPABILITY", "8.0", device);
    switch (attribute) {
    case 18: *value = 0; break;
    case 20: *value = atoi(element("STUB_MODE", "0", device)); break;
    case 33: *value = 0x10 + device; break;
    case 34: *value = 0; break;
    case 50: *value = 0; break;
    case 75: *value = atoi(capability); break;
    case 76: *value = atoi(strchr(capability, '.') + 1); break;
    default: return 1;
    }
    return 0;
}

int cuDeviceCanAccessPeer(int *can, int from, int to) {
    BEGIN;
    *can = from != to && atoi(element("STUB_PEERS", "1", 0));
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    BEGIN;
    contexts++;
    *context = &handles[device];
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    BEGIN;
    contexts--;
    return 0;
}

int cuCtxSetCurrent(void *context) {
    BEGIN;
    current = (int)((int *)context - handles);
    return 0;
}

int cuCtxSynchronize(void) {
    BEGIN;
    return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    BEGIN;
    if (current < 0) return 201;
    *total = (size_t)atol(element("STUB_TOTAL", "40960", current)) << 20;
    *free_bytes = (size_t)atol(element("STUB_FREE", "20480", current)) << 20;
    return 0;
}

int cuMemAlloc_v2(address *pointer, size_t bytes) {
    char text[60];
    BEGIN;
    snprintf(text, sizeof text, "allocated %zu", bytes);
    note(text);
    /* Nobody writes into large ones. */
    *pointer = (address)malloc(bytes > (64u << 20) ? 1 : bytes);
    allocations++;
    return 0;
}

int cuMemFree_v2(address pointer) {
    BEGIN;
    free((void *)pointer);
    allocations--;
    return 0;
}

int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) {
    BEGIN;
    memcpy((void *)to, from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, address from, size_t bytes) {
    BEGIN;
    memcpy(to, (void *)from, bytes);
    if (listed("STUB_WRONG", "copy")) ((char *)to)[bytes / 2] ^= 1;
    return 0;
}

int cuMemcpyPeer(address to, void *to_context, address from, void *from_context, size_t bytes) {
    BEGIN;
    if (to_context == from_context) return 1;
    memcpy((void *)to, (void *)from, bytes);
    if (listed("STUB_WRONG", "peer")) ((char *)to)[7] ^= 1;
    return 0;
}

int cuModuleLoadData(void **module, const void *image) {
    BEGIN;
    if (!strstr(image, ".entry samedevice_step")) return 218;
    *module = &modules;
    modules++;
    return 0;
}

int cuModuleUnload(void *module) {
    (void)module;
    BEGIN;
    modules--;
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    BEGIN;
    if (strcmp(name, "samedevice_step")) return 500;
    *function = module;
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    (void)function, (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    BEGIN;
    unsigned *numbers = (unsigned *)*(address *)arguments[0];
    unsigned count = *(unsigned *)arguments[1];
    for (unsigned i = 0; i < gx * bx && i < count; i++) {
        numbers[i] = numbers[i] * 3 + 1;
    }
    if (listed("STUB_WRONG", "kernel")) numbers[count - 1]++;
    return 0;
}
