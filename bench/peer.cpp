// The benchmark's endpoint: clients and workers of one broker in one thread over epoll, speaking ZMTP themselves.
//
// Modes, by what crosses the broker for one job:
//   emqp   client REQUEST -> broker -> worker;  worker REPLY, READY -> broker;  broker REPLY (handed over), REPLY (result) -> client
//   proxy  client REQUEST -> proxy -> worker;   worker two REPLYs -> proxy -> client, of the same two shapes
//   fill   client REQUEST with ack-requested;   broker ACK -> client (the messages stay waiting)
//   drain  broker REQUEST -> worker;            worker REPLY, READY -> broker
// In emqp and proxy the middle moves three messages in and three out per job.
// With --processes 2 the workers live in a process of their own.
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <signal.h>

#include <deque>
#include <map>

#include "peer_meter.hpp"
#include "peer_zmtp.hpp"

constexpr std::string_view VERSION = "eMQP/1.0";
constexpr std::string_view REPLY_VALUE = "{\"value\": 1}";
constexpr int64_t SECOND_NS = 1000000000;
constexpr int64_t STALL_NS = 20 * SECOND_NS;  // nothing moved for so long: give up loudly instead of hanging the bench

struct Options {
    std::map<std::string, std::string> given;
    std::string text(const std::string& name, const std::string& otherwise) const {
        const auto found = given.find(name);
        return found == given.end() ? otherwise : found->second;
    }
    int64_t number(const std::string& name, int64_t otherwise) const { return given.count(name) ? atoll(given.at(name).c_str()) : otherwise; }
    double real(const std::string& name, double otherwise) const { return given.count(name) ? atof(given.at(name).c_str()) : otherwise; }
};

// 36 bytes of uuid4 shape: a salt of this run, and a number in the last twelve hex digits.
class Ids {
public:
    Ids() {
        uint64_t salt = 0;
        if (getrandom(&salt, sizeof salt, 0) != sizeof salt) fail("getrandom");
        char text[37];
        snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-000000000000", unsigned(salt), unsigned(salt >> 32) & 0xffffu, unsigned(salt >> 48) & 0xfffu,
                 unsigned(salt >> 52) & 0xfffu);
        sample.assign(text, 36);
    }
    static void write(char* id, uint64_t number) {
        for (int i = 35; i >= 24; i--, number >>= 4) id[i] = "0123456789abcdef"[number & 15];
    }
    static uint64_t read(std::string_view id) {
        uint64_t number = 0;
        for (size_t i = 24; i < 36; i++) number = number << 4 | uint64_t(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
        return number;
    }
    std::string sample;
};

volatile sig_atomic_t stop_asked = 0;

class Peer {
public:
    explicit Peer(const Options& options)
        : mode_(options.text("mode", "emqp")),
          in_flight_max_(options.number("in-flight", 1)),
          slots_(options.number("slots", 1)),
          trips_max_(options.number("trips", 0)),
          warmup_ns_(int64_t(options.real("warmup", 0) * 1e9)),
          window_ns_(int64_t(options.real("seconds", 0) * 1e9)),
          watched_pid_(int(options.number("watch", 0))),
          workers_pid_(int(options.number("workers-pid", 0))) {
        if (mode_ != "emqp" && mode_ != "proxy" && mode_ != "fill" && mode_ != "drain") fail("--mode is emqp, proxy, fill or drain");
        if (trips_max_ == 0 && window_ns_ == 0) fail("give --trips N or --seconds S");
        const std::string queue = options.text("queue", "benchqueue");
        build(queue, size_t(options.number("body", 100)));
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        const int64_t clients = mode_ == "drain" ? 0 : options.number("clients", 1);
        const int64_t workers = mode_ == "fill" ? 0 : options.number("workers", 1);
        for (int64_t i = 0; i < workers; i++) connect(options.text("worker-addr", ""), true);
        for (int64_t i = 0; i < clients; i++) connect(options.text("client-addr", ""), false);
        started_ns_.assign(size_t(in_flight_max_) * 8 + 16, 0);
        if (mode_ == "drain") seen_.assign(size_t(trips_max_) * 2, false);
    }

    void run() {
        moved_ns_ = beat_ns_ = now_ns();
        turn_until([this] { return ready(); });
        start_ns_ = now_ns();
        for (int64_t i = 0; i < in_flight_max_ && !clients_.empty(); i++) ask(*clients_[size_t(i) % clients_.size()]);
        turn_until([this] { return ended_ && settled(); });
        print();
        leave();
    }

    // The other process of --processes 2: workers until told to stop.
    void serve(int ready_pipe) {
        moved_ns_ = beat_ns_ = now_ns();
        turn_until([this] { return ready(); });
        if (write(ready_pipe, "r", 1) != 1) fail("the clients' process is gone");
        serving_ = true;
        turn_until([] { return stop_asked != 0; });
        leave();
    }

private:
    const std::string mode_;
    const int64_t in_flight_max_, slots_, trips_max_, warmup_ns_, window_ns_;
    const int watched_pid_, workers_pid_;
    int epoll_ = -1;
    std::deque<Connection> connections_;
    std::vector<Connection*> clients_, dirty_;
    Ids ids_;
    Template request_, reply_, ready_, handed_, inform_, beat_, goodbye_;
    size_t request_id_ = 0, reply_id_ = 0, reply_to_ = 0, ready_id_ = 0, handed_id_ = 0, handed_to_ = 0, inform_id_ = 0, beat_id_ = 0, goodbye_id_ = 0;
    uint64_t sent_ = 0, number_ = 0, worker_no_ = 0, handed_over_ = 0, results_ = 0, trips_ = 0, trips_at_end_ = 0, duplicates_ = 0, next_client_ = 0;
    std::vector<int64_t> started_ns_;  // by request number modulo its size; 0 = not in flight
    std::vector<bool> seen_;           // drain: which request numbers came
    int64_t start_ns_ = 0, moved_ns_ = 0, beat_ns_ = 0, now_ns_ = 0;
    bool measuring_ = false, ended_ = false, serving_ = false;
    Meter begin_, end_;
    Histogram latency_;

    void build(const std::string& queue, size_t body_size) {
        std::string body = "[\"run\", {\"path\": \"bench\", \"callable\": \"echo\", \"args\": [\"";
        const std::string tail = "\"]}]";
        if (body.size() + tail.size() < body_size) body.append(body_size - body.size() - tail.size(), 'x');
        body = (body + tail).substr(0, body_size);
        request_id_ = start(request_, "REQUEST");
        request_.add(queue);
        request_.add(mode_ == "fill" ? "ack-requested" : "reply-requested");
        request_.add(body, true);
        reply_id_ = start(reply_, "REPLY");
        reply_.add(REPLY_VALUE);
        reply_to_ = reply_.add(ids_.sample, true);
        handed_id_ = start(handed_, "REPLY");
        handed_to_ = handed_.add(ids_.sample, true);
        inform_id_ = start(inform_, "INFORM");
        inform_.add("[[10, \"" + queue + "\"]]");
        inform_.add("worker");
        inform_.add("bytes", true);
        beat_id_ = start(beat_, "HEARTBEAT");
        beat_.add("0.0", true);
        ready_id_ = start(ready_, "READY", true);
        goodbye_id_ = start(goodbye_, "KBYE", true);
    }
    size_t start(Template& message, std::string_view command, bool is_all = false) {
        message.add("");
        message.add(VERSION);
        message.add(command);
        return message.add(ids_.sample, is_all);
    }

    void connect(const std::string& address, bool is_worker) {
        Connection& c = connections_.emplace_back();
        c.index = int(connections_.size()) - 1;
        c.is_worker = is_worker;
        // eMQP peers name themselves, so that a reply finds them after a restart; the proxy is spared the longer envelope.
        c.open(address, mode_ == "proxy" ? "" : "bench" + std::to_string(c.index) + "-" + ids_.sample.substr(0, 13));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &event);
        if (!is_worker) clients_.push_back(&c);
        mark(c);
    }

    bool ready() const {
        for (const Connection& c : connections_)
            if (!c.handshaken || (c.is_worker && mode_ != "proxy" && !c.acknowledged)) return false;
        return true;
    }
    bool settled() const {
        if (mode_ == "drain") return true;
        return results_ == sent_ && (mode_ == "fill" || handed_over_ == sent_);
    }

    template <class F>
    void turn_until(F&& finished) {
        epoll_event events[256];
        flush_dirty();
        while (!finished()) {
            const int count = epoll_wait(epoll_, events, 256, 100);
            now_ns_ = now_ns();
            if (start_ns_ != 0 && !ended_) step_window();
            for (int i = 0; i < count; i++) {
                Connection& c = *static_cast<Connection*>(events[i].data.ptr);
                if (events[i].events & EPOLLOUT) mark(c);
                if (events[i].events & ~unsigned(EPOLLOUT)) {
                    moved_ns_ = now_ns_;
                    c.read_some([this](Connection& from, const Message& m) { on_message(from, m); });
                    if (c.is_worker && c.handshaken && !c.informed && mode_ != "proxy") inform(c);
                }
            }
            if (trips_max_ > 0 && measuring_ && !ended_) step_window();
            if (now_ns_ - beat_ns_ > 2 * SECOND_NS) send_beats();
            if (!serving_ && now_ns_ - moved_ns_ > STALL_NS) {
                fail("stalled: sent " + std::to_string(sent_) + ", handed over " + std::to_string(handed_over_) + ", results " + std::to_string(results_) +
                     (ready() ? "" : ", handshake or INFORM unanswered"));
            }
            flush_dirty();
        }
    }

    void step_window() {
        const int64_t since_ns = now_ns_ - start_ns_;
        if (!measuring_ && since_ns >= warmup_ns_) {
            measuring_ = true;
            trips_ = 0;
            begin_ = Meter::first(watched_pid_, workers_pid_);
        }
        if (measuring_ && ((window_ns_ > 0 && now_ns_ - begin_.at_ns >= window_ns_) || (trips_max_ > 0 && trips_ >= uint64_t(trips_max_)))) {
            end_ = Meter::last(watched_pid_, workers_pid_);
            trips_at_end_ = trips_;
            ended_ = true;
        }
    }

    void mark(Connection& c) {
        if (c.dirty) return;
        c.dirty = true;
        dirty_.push_back(&c);
    }
    void flush_dirty() {
        for (Connection* c : dirty_) {
            c->dirty = false;
            const bool waits = !c->flush();
            if (waits == c->waits_write) continue;
            c->waits_write = waits;
            epoll_event event{};
            event.events = EPOLLIN | (waits ? unsigned(EPOLLOUT) : 0u);
            event.data.ptr = c;
            epoll_ctl(epoll_, EPOLL_CTL_MOD, c->fd, &event);
        }
        dirty_.clear();
    }

    // Appends a worker's message with a fresh id of its own.
    size_t put(Connection& c, const Template& message, size_t id_at) {
        const size_t at = c.out.size();
        c.out += message.wire;
        Ids::write(&c.out[at + id_at], ++worker_no_ | uint64_t(1) << 47);
        mark(c);
        return at;
    }

    void ask(Connection& c) {
        if (trips_max_ > 0 && sent_ >= uint64_t(trips_max_) && window_ns_ == 0) return;
        while (started_ns_[number_ % started_ns_.size()] != 0) number_++;  // an old one is still out: leave its place alone
        const size_t at = c.out.size();
        c.out += request_.wire;
        Ids::write(&c.out[at + request_id_], number_);
        started_ns_[number_++ % started_ns_.size()] = now_ns();
        sent_++;
        mark(c);
    }

    void on_message(Connection& c, const Message& m) {
        const size_t skip = mode_ == "proxy" && c.is_worker ? 1 : 0;
        if (m.count < skip + 4) fail("a message of " + std::to_string(m.count) + " frames");
        const std::string_view command = m.frame[skip + 2];
        if (c.is_worker && command == "REQUEST") return mode_ == "proxy" ? answer_twice(c, m) : answer(c, m);
        if (!c.is_worker && command == "REPLY" && mode_ != "fill") return m.count == 5 ? on_handed_over() : on_result(c, m.frame[5]);
        if (command == "ACK") return c.is_worker ? on_inform_ack(c) : on_result(c, m.frame[4]);
        if (command == "HEARTBEAT" || command == "REPLY") return;
        fail("unexpected " + std::string(command) + (c.is_worker ? " at a worker" : " at a client"));
    }

    // Only now: libzmq drops a peer whose first message arrives before its own READY has left.
    void inform(Connection& c) {
        c.informed = true;
        put(c, inform_, inform_id_);
    }

    void on_inform_ack(Connection& c) {
        c.acknowledged = true;
        for (int64_t i = 0; i < slots_; i++) put(c, ready_, ready_id_);
    }

    void answer(Connection& c, const Message& m) {
        if (m.count != 7 || m.frame[3].size() != 36) fail("a REQUEST of another shape");
        const size_t at = put(c, reply_, reply_id_);
        memcpy(&c.out[at + reply_to_], m.frame[3].data(), 36);
        put(c, ready_, ready_id_);
        if (mode_ != "drain") return;
        const uint64_t number = Ids::read(m.frame[3]);
        if (number >= seen_.size() || seen_[number]) {
            duplicates_++;
            return;
        }
        seen_[number] = true;
        trips_++;
        results_++;
    }

    void answer_twice(Connection& c, const Message& m) {
        if (m.count != 8 || m.frame[4].size() != 36) fail("a REQUEST of another shape");
        Template envelope;
        envelope.add(m.frame[0]);
        c.out += envelope.wire;
        size_t at = put(c, handed_, handed_id_);
        memcpy(&c.out[at + handed_to_], m.frame[4].data(), 36);
        c.out += envelope.wire;
        at = put(c, reply_, reply_id_);
        memcpy(&c.out[at + reply_to_], m.frame[4].data(), 36);
    }

    void on_handed_over() { handed_over_++; }

    void on_result(Connection& c, std::string_view id) {
        if (id.size() != 36) fail("a reply to an id that is not ours");
        int64_t& started_ns = started_ns_[Ids::read(id) % started_ns_.size()];
        if (started_ns == 0) {
            duplicates_++;
            return;
        }
        if (measuring_ && !ended_) latency_.add(now_ns_ - started_ns);
        started_ns = 0;
        results_++;
        trips_++;
        if (ended_) return;
        // Fewer in flight than connections: go round, so that each connection is used.
        Connection& next = size_t(in_flight_max_) < clients_.size() ? *clients_[++next_client_ % clients_.size()] : c;
        ask(next);
    }

    void send_beats() {
        beat_ns_ = now_ns_;
        if (mode_ == "proxy") return;
        for (Connection& c : connections_)
            if (c.is_worker) put(c, beat_, beat_id_);
    }

    // Workers say goodbye, so that no slot of theirs is left behind for the next run; then each side closes in order.
    void leave() {
        for (Connection& c : connections_) {
            if (c.is_worker && mode_ != "proxy") put(c, goodbye_, goodbye_id_);
            c.flush();
        }
        for (Connection& c : connections_) c.close_in_order();
    }

    void print() const {
        const double seconds = double(end_.at_ns - begin_.at_ns) / 1e9;
        const double ours = (end_.own_s - begin_.own_s) + (end_.watched_s - begin_.watched_s);
        const double others = (end_.all_s - begin_.all_s) - ours + (end_.steal_s - begin_.steal_s);
        const double machine = seconds * double(sysconf(_SC_NPROCESSORS_ONLN));
        printf("{\"peer\": \"c++\", \"mode\": \"%s\", \"trips\": %llu, \"seconds\": %.6f, \"trips_per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
               "\"broker_cpu_s\": %.6f, \"peer_cpu_s\": %.6f, \"others_share\": %.4f, \"duplicates\": %llu}\n",
               mode_.c_str(), static_cast<unsigned long long>(trips_at_end_), seconds, double(trips_at_end_) / seconds, latency_.percentile_us(0.50),
               latency_.percentile_us(0.99), end_.watched_s - begin_.watched_s, end_.own_s - begin_.own_s, others > 0 ? others / machine : 0.0,
               static_cast<unsigned long long>(duplicates_));
    }
};

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0) fail(std::string("unexpected argument ") + argv[i]);
        options.given[argv[i] + 2] = argv[i + 1];
    }
    if (options.number("processes", 1) == 1) {
        Peer(options).run();
        return 0;
    }
    int ready[2];
    if (pipe(ready) != 0) fail("pipe");
    const pid_t workers_pid = fork();
    if (workers_pid < 0) fail("fork");
    if (workers_pid == 0) {
        signal(SIGTERM, [](int) { stop_asked = 1; });
        options.given["clients"] = "0";
        Peer(options).serve(ready[1]);
        return 0;
    }
    close(ready[1]);
    char go;
    if (read(ready[0], &go, 1) != 1) fail("the workers' process ended");
    options.given["workers"] = "0";
    options.given["workers-pid"] = std::to_string(workers_pid);
    Peer(options).run();
    kill(workers_pid, SIGTERM);
    waitpid(workers_pid, nullptr, 0);
}
