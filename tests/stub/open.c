/* Opens a library as Python does, and says what the loader says. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++)
        if (!dlopen(arguments[i], RTLD_NOW)) {
            puts(dlerror());
            return 1;
        }
    return 0;
}
