// The benchmark's endpoint: clients and workers of one broker in one thread, speaking its dialects themselves.
//
// --mode names the dialogue; each peer_DIALECT.hpp says at its top what crosses the broker, and what the proxy it is compared with.
// With --processes 2 the workers live in a process of their own.
#include <sys/wait.h>

#include "peer_ebus.hpp"
#include "peer_emqp.hpp"
#include "peer_loop.hpp"
#include "peer_pingpong.hpp"
#include "peer_rq.hpp"
#include "peer_scale0.hpp"

template <class Dialogue>
void play(Options options) {
    if (options.number("processes", 1) == 1) return Loop<Dialogue>(options).run();
    int ready[2];
    if (pipe(ready) != 0) fail("pipe");
    const pid_t workers_pid = fork();
    if (workers_pid < 0) fail("fork");
    if (workers_pid == 0) {
        signal(SIGTERM, [](int) { stop_asked = 1; });
        options.given["clients"] = "0";
        return Loop<Dialogue>(options).serve(ready[1]);
    }
    close(ready[1]);
    char go;
    if (read(ready[0], &go, 1) != 1) fail("the workers' process ended");
    options.given["workers"] = "0";
    options.given["workers-pid"] = std::to_string(workers_pid);
    Loop<Dialogue>(options).run();
    kill(workers_pid, SIGTERM);
    waitpid(workers_pid, nullptr, 0);
}

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0) fail(std::string("unexpected argument ") + argv[i]);
        options.given[argv[i] + 2] = argv[i + 1];
    }
    const std::string mode = options.mode();
    if (mode == "emqp" || mode == "proxy" || mode == "fill" || mode == "drain")
        play<Emqp>(options);
    else if (mode == "rq")
        play<Rq>(options);
    else if (mode == "ebus" || mode == "ebus-proxy")
        play<Ebus>(options);
    else if (mode == "scale0" || mode == "scale0-proxy")
        play<Scale0>(options);
    else if (mode == "pingpong" || mode == "pingpong-proxy")
        play<Pingpong>(options);
    else
        fail("no mode " + mode);
}
