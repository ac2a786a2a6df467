// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/namespaces.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <tuple>

#include "tests/faults/process_matrix.hpp"

namespace faults {
namespace {

constexpr int kMost = 3;  // workers
constexpr char kName[] = "dist-faults-";

// What a shell makes of it; no text of a user's is in it.
bool does(const std::string& commands) {
  return std::system(("{ " + commands + "; } >/dev/null 2>&1").c_str()) == 0;
}

std::string in_text(int number) { return std::to_string(number); }

// A bridge with a port for each worker, each in a namespace of its own.
class Namespaces {
 public:
  Namespaces() : prefix_(kName + in_text(getpid()) + "-") {
    // Of programs that were killed.
    (void)does("for each in $(ip netns list | sed -n 's/^\\(" + std::string(kName) +
               "[0-9]*-[a-z0-9]*\\).*/\\1/p'); do pid=${each#" + kName +
               "}; [ -d /proc/${pid%-*} ] || ip netns del $each; done");
    std::string all = "ip netns add " + hub() + " && ip -n " + hub() +
                      " link add name br0 type bridge && ip -n " + hub() + " link set br0 up";
    for (int w = 0; w < kMost; ++w) {
      const std::string port = "port" + in_text(w);
      all += " && ip netns add " + of(w) + " && ip -n " + hub() + " link add name " + port +
             " type veth peer name e0 netns " + of(w) + " && ip -n " + hub() + " link set " + port +
             " master br0 up && ip -n " + of(w) + " addr add " + host(w) + "/24 dev e0 && ip -n " + of(w) +
             " link set e0 up gso_max_segs 1 gso_max_size 1514 && ip -n " + of(w) + " link set lo up";
    }
    made_ = does(all);
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
  void cut(int worker) const { (void)does("ip -n " + hub() + " link set port" + in_text(worker) + " down"); }
  void mend(int worker) const { (void)does("ip -n " + hub() + " link set port" + in_text(worker) + " up"); }

  // What each worker sends is lost with 5 %, or goes at 50 Mbit/s. What it sends is lost where it comes: TCP sees what
  // is dropped on its own side.
  bool worsen(LinkFault fault) const {
    for (int w = 0; w < kMost; ++w) {
      const std::string to = "tc -n " + of(w);
      bool well = true;
      if (fault == LinkFault::kSlow)
        well = does(to + " qdisc replace dev e0 root tbf rate 50mbit burst 32k latency 100ms");
      if (fault == LinkFault::kLoss) {
        // Where the kernel has no netem, a filter draws a number for each packet, and drops the highest 5 %.
        well = does(to + " qdisc replace dev e0 root netem loss 5%") ||
               does(to + " qdisc replace dev e0 clsact && " + to +
                    " filter add dev e0 ingress bpf direct-action bytecode "
                    "'4,32 0 0 4294963256,53 0 1 4080218931,6 0 0 2,6 0 0 4294967295'");
      }
      if (!well) return false;
    }
    return true;
  }

 private:
  std::string hub() const { return prefix_ + "hub"; }

  const std::string prefix_;
  bool made_ = false;
};

// An authority and a certificate for each worker, by openssl, in a folder that ends with it.
class Certificates {
 public:
  Certificates() {
    char folder[] = "/tmp/dist-faults-XXXXXX";
    if (mkdtemp(folder) == nullptr) return;
    folder_ = folder;
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    std::string all = "cd " + folder_ + " && openssl req -x509" + key +
                      " -days 2 -subj /CN=faults -keyout ca.key -out ca.pem";
    for (int w = 0; w < kMost; ++w) {
      const std::string own = "w" + in_text(w);
      all += " && openssl req" + key + " -subj /CN=" + own + " -keyout " + own + ".key -out " + own +
             ".csr && echo subjectAltName=IP:" + Namespaces::host(w) + " >" + own +
             ".ext && openssl x509 -req -in " + own +
             ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2" + " -extfile " + own + ".ext -out " +
             own + ".pem";
    }
    made_ = does(all);
  }
  ~Certificates() {
    if (!folder_.empty()) (void)does("rm -r " + folder_);
  }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  bool made() const { return made_; }
  std::vector<std::string> environment(int worker) const {
    const std::string own = folder_ + "/w" + in_text(worker);
    return {"DIST_TLS_CA=" + folder_ + "/ca.pem", "DIST_TLS_CERTIFICATE=" + own + ".pem",
            "DIST_TLS_KEY=" + own + ".key", "DIST_JOB_SECRET=of the links"};
  }

 private:
  std::string folder_;
  bool made_ = false;
};

std::vector<WorkerCell> cells_on(LinkFault fault, const Options& options) {
  if (fault == LinkFault::kDown) return process_cells_of(WorkerFault::kCutOff, options.whole, options.seed);
  // Each collective on links that are merely bad; who is where makes no difference.
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
