// What the endpoint measures: time, a latency histogram, and who used the processors meanwhile.
#pragma once

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

inline int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// 64 buckets an octave: a percentile is at most 1.6 % off, and a sample costs one increment.
class Histogram {
public:
    void add(int64_t value_ns) {
        if (value_ns < 64) value_ns = 64;
        const int octave = 63 - __builtin_clzll(uint64_t(value_ns));
        counts_[size_t(octave) * 64 + size_t((value_ns >> (octave - 6)) & 63)]++;
        total_++;
    }
    double percentile_us(double share) const {
        if (total_ == 0) return 0.0;
        uint64_t left = uint64_t(share * double(total_ - 1)) + 1;
        for (size_t i = 0; i < counts_.size(); i++) {
            if (counts_[i] >= left) {
                const int octave = int(i / 64);
                const double low = double((uint64_t(64) + i % 64) << (octave - 6));
                return low * (1.0 + 0.5 / 64) / 1000.0;
            }
            left -= counts_[i];
        }
        return 0.0;
    }

private:
    std::vector<uint64_t> counts_ = std::vector<uint64_t>(64 * 64, 0);
    uint64_t total_ = 0;
};

// Processor time at one instant; two of them span the measured window.
struct Meter {
    int64_t at_ns = 0;
    double own_s = 0;      // this endpoint, and its workers' process
    double watched_s = 0;  // the broker, all its threads
    double all_s = 0;      // every process, with the children each has outlived
    double steal_s = 0;    // taken by the hypervisor for others

    // The walk over all processes lies outside the window: before its first instant, after its last.
    static Meter first(int watched_pid, int workers_pid) {
        Meter m;
        m.read_machine();
        m.read_ours(watched_pid, workers_pid);
        return m;
    }
    static Meter last(int watched_pid, int workers_pid) {
        Meter m;
        m.read_ours(watched_pid, workers_pid);
        m.read_machine();
        return m;
    }

private:
    void read_ours(int watched_pid, int workers_pid) {
        at_ns = now_ns();
        rusage use;
        getrusage(RUSAGE_SELF, &use);
        own_s = double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + double(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
        if (workers_pid > 0) own_s += threads_s(workers_pid);
        watched_s = watched_pid > 0 ? threads_s(watched_pid) : 0;
    }

    // Summed per process, because these are exact; the machine's own line in /proc/stat is sampled by ticks and misses
    // short wake-ups, which is what a broker lives on. A dead child's time moves to its parent, so the sum keeps it.
    void read_machine() {
        const double ticks = double(sysconf(_SC_CLK_TCK));
        if (FILE* f = fopen("/proc/stat", "r")) {
            unsigned long long steal;
            if (fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) == 1) steal_s = double(steal) / ticks;
            fclose(f);
        }
        DIR* dir = opendir("/proc");
        if (!dir) return;
        while (dirent* entry = readdir(dir)) {
            if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
            FILE* f = fopen((std::string("/proc/") + entry->d_name + "/stat").c_str(), "r");
            if (!f) continue;
            char line[1024];
            const size_t size = fread(line, 1, sizeof line - 1, f);
            fclose(f);
            line[size] = 0;
            const char* after = strrchr(line, ')');  // the command's name may hold blanks and brackets itself
            long long user, system, children_user, children_system;
            if (after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &user, &system, &children_user, &children_system) == 4)
                all_s += double(user + system + children_user + children_system) / ticks;
        }
        closedir(dir);
    }

    // Sum over threads: schedstat counts nanoseconds, /proc/PID/stat only 10 ms ticks.
    static double threads_s(int pid) {
        const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
        DIR* dir = opendir(tasks.c_str());
        if (!dir) return 0;
        double sum_s = 0;
        while (dirent* entry = readdir(dir)) {
            if (entry->d_name[0] == '.') continue;
            if (FILE* f = fopen((tasks + "/" + entry->d_name + "/schedstat").c_str(), "r")) {
                unsigned long long run_ns;
                if (fscanf(f, "%llu", &run_ns) == 1) sum_s += double(run_ns) / 1e9;
                fclose(f);
            }
        }
        closedir(dir);
        return sum_s;
    }
};
