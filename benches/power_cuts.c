/* Notes what is on disk: each call of fsync or fdatasync, with the content that is there for good after it.
 *
 * Preloaded by power_cuts.py into a command. For the n-th call about something below POWER_FOLDER it makes, in POWER_NOTES,
 *   n.what   "file INODE" or "folder INODE"
 *   n.data   the content of the file, or the names in the folder with their inodes
 *   n.tree   the names below POWER_FOLDER with their inodes, as they are in the cache of the system
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int calls = 0;

static FILE *note(int call, const char *kind) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d.%s", getenv("POWER_NOTES"), call, kind);
    FILE *file = fopen(path, "w");
    if (!file) abort();
    return file;
}

static void names(FILE *out, const char *folder, const char *prefix, int below) {
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    struct dirent *entry;
    while ((entry = readdir(open_folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char path[PATH_MAX], name[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        snprintf(name, sizeof name, "%s%s", prefix, entry->d_name);
        struct stat about;
        if (lstat(path, &about)) continue;
        int is_folder = S_ISDIR(about.st_mode);
        fprintf(out, "%s %lu %s\n", is_folder ? "folder" : "file", (unsigned long)about.st_ino, name);
        if (is_folder && below) {
            char longer[PATH_MAX + 1];
            snprintf(longer, sizeof longer, "%s/", name);
            names(out, path, longer, below);
        }
    }
    closedir(open_folder);
}

static void noted(int descriptor) {
    const char *folder = getenv("POWER_FOLDER");
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length < 0) return;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder))) return;
    struct stat about;
    if (fstat(descriptor, &about)) return;
    pthread_mutex_lock(&lock);
    int call = ++calls;
    int is_folder = S_ISDIR(about.st_mode);
    FILE *what = note(call, "what");
    fprintf(what, "%s %lu", is_folder ? "folder" : "file", (unsigned long)about.st_ino);
    fclose(what);
    FILE *data = note(call, "data");
    if (is_folder) {
        names(data, path, "", 0);
    } else {
        char buffer[1 << 16];
        off_t place = 0;
        ssize_t count;
        /* By another descriptor: this one may be for writing only. */
        int reading = open(link, O_RDONLY);
        while (reading >= 0 && (count = pread(reading, buffer, sizeof buffer, place)) > 0) {
            fwrite(buffer, 1, count, data);
            place += count;
        }
        if (reading >= 0) close(reading);
    }
    fclose(data);
    FILE *tree = note(call, "tree");
    names(tree, folder, "", 1);
    fclose(tree);
    pthread_mutex_unlock(&lock);
}

static int through(const char *name, int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(descriptor);
    if (!result) noted(descriptor);
    return result;
}

int fsync(int descriptor) { return through("fsync", descriptor); }
int fdatasync(int descriptor) { return through("fdatasync", descriptor); }
