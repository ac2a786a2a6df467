// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/namespaces.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string_view>
#include <utility>

#include "tests/faults/process_matrix.hpp"

namespace faults {
namespace {

constexpr int kMost = 3;  // workers
constexpr char kName[] = "dist-faults-";

// Runs the commands in a shell. They contain no text from a user.
bool does(const std::string& commands) {
  return std::system(("{ " + commands + "; } >/dev/null 2>&1").c_str()) == 0;
}

std::string in_text(int number) { return std::to_string(number); }

// Returns `text` with names such as {hub} replaced by their values.
std::string filled(std::string text, std::initializer_list<std::pair<std::string_view, std::string>> values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  }
  return text;
}

// A bridge with a port for each worker, each in a namespace of its own.
class Namespaces {
 public:
  Namespaces() : prefix_(kName + in_text(getpid()) + "-") {
    // Deletes the namespaces of programs that were killed.
    (void)does(
        filled("for each in $(ip netns list | sed -n 's/^\\({name}[0-9]*-[a-z0-9]*\\).*/\\1/p'); do "
               "pid=${each#{name}}; [ -d /proc/${pid%-*} ] || ip netns del $each; done",
               {{"{name}", kName}}));
    made_ =
        does(filled("ip netns add {hub} && ip -n {hub} link add name br0 type bridge && "
                    "ip -n {hub} link set br0 up",
                    {{"{hub}", hub()}}));
    for (int w = 0; w < kMost && made_; ++w) {
      // Without segmentation offload, so that a lost packet is a single packet.
      made_ =
          does(filled("ip netns add {own} && "
                      "ip -n {hub} link add name {port} type veth peer name e0 netns {own} && "
                      "ip -n {hub} link set {port} master br0 up && ip -n {own} addr add {host}/24 dev e0 && "
                      "ip -n {own} link set e0 up gso_max_segs 1 gso_max_size 1514 && "
                      "ip -n {own} link set lo up",
                      {{"{hub}", hub()}, {"{own}", of(w)}, {"{port}", port(w)}, {"{host}", host(w)}}));
    }
  }
  ~Namespaces() {
    for (int w = 0; w < kMost; ++w) (void)does("ip netns del " + of(w));
    (void)does("ip netns del " + hub());
  }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  bool made() const { return made_; }
  std::string of(int worker) const { return prefix_ + in_text(worker); }
  static std::string host(int worker) { return "10.77.0." + in_text(worker + 1); }
  void cut(int worker) const { set_port(worker, "down"); }
  void mend(int worker) const { set_port(worker, "up"); }

  // Limits what each worker sends to 50 Mbit/s, or drops 5 % of what it receives. Packets are dropped by the
  // receiver, because TCP would notice drops on the sending side.
  bool worsen(LinkFault fault) const {
    bool well = true;
    for (int w = 0; w < kMost && well; ++w) {
      const auto one_of = [&](const char* commands) { return does(filled(commands, {{"{own}", of(w)}})); };
      if (fault == LinkFault::kSlow)
        well = one_of("tc -n {own} qdisc replace dev e0 root tbf rate 50mbit burst 32k latency 100ms");
      // The filter draws a random number for each packet and drops the highest 5 %. Not every kernel has
      // netem.
      if (fault == LinkFault::kLoss)
        well = one_of(
            "tc -n {own} qdisc replace dev e0 clsact && "
            "tc -n {own} filter add dev e0 ingress bpf direct-action bytecode "
            "'4,32 0 0 4294963256,53 0 1 4080218931,6 0 0 2,6 0 0 4294967295'");
    }
    return well;
  }

 private:
  std::string hub() const { return prefix_ + "hub"; }
  static std::string port(int worker) { return "port" + in_text(worker); }
  void set_port(int worker, const char* how) const {
    // If this fails, the peers' runs succeed, and the cell reports that.
    (void)does(filled("ip -n {hub} link set {port} {how}",
                      {{"{hub}", hub()}, {"{port}", port(worker)}, {"{how}", how}}));
  }

  const std::string prefix_;
  bool made_ = false;
};

// An authority and a certificate for each worker, made with openssl in a temporary folder.
class Certificates {
 public:
  Certificates() {
    char folder[] = "/tmp/dist-faults-XXXXXX";
    if (mkdtemp(folder) == nullptr) return;
    folder_ = folder;
    made_ = does(
        filled("cd {folder} && openssl req -x509 {key} -days 2 -subj /CN=faults -keyout ca.key -out ca.pem",
               {{"{folder}", folder_}, {"{key}", kKey}}));
    for (int w = 0; w < kMost && made_; ++w) {
      made_ = does(
          filled("cd {folder} && openssl req {key} -subj /CN={own} -keyout {own}.key -out {own}.csr && "
                 "echo subjectAltName=IP:{host} >{own}.ext && openssl x509 -req -in {own}.csr -CA ca.pem "
                 "-CAkey ca.key -CAcreateserial -days 2 -extfile {own}.ext -out {own}.pem",
                 {{"{folder}", folder_},
                  {"{key}", kKey},
                  {"{own}", "w" + in_text(w)},
                  {"{host}", Namespaces::host(w)}}));
    }
  }
  ~Certificates() {
    if (!folder_.empty()) (void)does("rm -r " + folder_);
  }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  bool made() const { return made_; }
  std::vector<std::string> environment(int worker) const {
    const auto setting = [&](const char* text) {
      return filled(text, {{"{folder}", folder_}, {"{own}", "w" + in_text(worker)}});
    };
    return {setting("DIST_TLS_CA={folder}/ca.pem"), setting("DIST_TLS_CERTIFICATE={folder}/{own}.pem"),
            setting("DIST_TLS_KEY={folder}/{own}.key"), "DIST_JOB_SECRET=of the links"};
  }

 private:
  static constexpr char kKey[] = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

  std::string folder_;
  bool made_ = false;
};

std::vector<WorkerCell> cells_on(LinkFault fault, const Options& options) {
  if (fault == LinkFault::kDown) return process_cells_of(WorkerFault::kCutOff, options.whole, options.seed);
  // One cell per collective for links that are only bad, because all positions of workers are equivalent.
  std::vector<WorkerCell> cells = process_cells_of(WorkerFault::kNobody, true, options.seed);
  std::mt19937_64 random(options.seed);
  std::shuffle(cells.begin(), cells.end(), random);
  if (!options.whole && cells.size() > 6) cells.resize(6);
  return cells;
}

}  // namespace

const char* link_fault_name(LinkFault fault) {
  static const char* const names[] = {"link_down", "packet_loss", "slow_link"};
  return names[static_cast<int>(fault)];
}

std::vector<LinkResult> play_links(LinkFault fault, const Options& options, std::string* why_not) {
  std::vector<LinkResult> results;
  const Namespaces namespaces;
  const Certificates certificates;
  if (!namespaces.made()) {
    *why_not = "no network namespaces can be made here: it needs root, and ip of iproute2";
  } else if (!certificates.made()) {
    *why_not = "no certificates can be made here: it needs openssl";
  } else if (!namespaces.worsen(fault)) {
    *why_not = "the kernel, or tc, cannot make such links";
  }
  if (!why_not->empty()) return results;
  for (const bool tls : {false, true}) {
    LinkResult result{{}, fault, tls};
    for (const WorkerCell& cell : cells_on(fault, options)) {
      if (cell.text().find(options.filter) == std::string::npos) continue;
      ProcessSetup setup;
      for (int w = 0; w < cell.workers; ++w) setup.addresses.push_back(Namespaces::host(w) + ":20000");
      setup.environment = [&](int worker) {
        if (tls) return certificates.environment(worker);
        return std::vector<std::string>{"DIST_PLAINTEXT=1", "DIST_JOB_SECRET=of the links"};
      };
      setup.prefix = [&](int worker) {
        return std::vector<std::string>{"ip", "netns", "exec", namespaces.of(worker)};
      };
      setup.cut = [&] { namespaces.cut(cell.guilty); };
      setup.mend = [&] { namespaces.mend(cell.guilty); };
      play_and_count(cell, setup, result);
    }
    if (result.cells > 0) results.push_back(std::move(result));
  }
  playing("");
  return results;
}

}  // namespace faults
