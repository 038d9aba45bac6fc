#include "bench_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/process.h"
#include "temporary.h"
#include "vesta/error.h"

namespace vesta::cli {

struct Peer::Impl {
  TemporaryFolder folder;
  std::string name, pending;
  std::string to_path() const { return folder.name + "/to"; }
  std::string from_path() const { return folder.name + "/from"; }
  int to = -1, from = -1;
  std::unique_ptr<Process> child;

  ~Impl() {
    child.reset();  // kills and waits
    if (to >= 0) close(to);
    if (from >= 0) close(from);
  }
};

Peer::Peer(std::vector<std::string> argv) : impl_(new Impl) {
  impl_->name = argv.at(0);
  bool ok = mkfifo(impl_->to_path().c_str(), 0600) == 0 && mkfifo(impl_->from_path().c_str(), 0600) == 0;
  // Read and write: opening does not wait for the other side, and the end of the child is seen by waiting for it.
  if (ok) impl_->to = open(impl_->to_path().c_str(), O_RDWR | O_CLOEXEC);
  if (ok) impl_->from = open(impl_->from_path().c_str(), O_RDWR | O_CLOEXEC);
  VESTA_CHECK_AS(IoError, impl_->to >= 0 && impl_->from >= 0,
                 "bench: cannot make pipes in /tmp: ", std::strerror(errno));
  argv.push_back(impl_->to_path());
  argv.push_back(impl_->from_path());
  ProcessOptions options;
  options.argv = std::move(argv);
  options.own_group = false;  // ^C reaches it
  auto child = Process::start(options);
  VESTA_CHECK_AS(IoError, child.ok(), "bench: cannot start the peer '", impl_->name, "': ", child.error());
  impl_->child = std::make_unique<Process>(std::move(*child));
}

Peer::~Peer() = default;

std::string Peer::ask(const std::string& line, int timeout_s) {
  std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(impl_->to, text.data() + done, text.size() - done);
    VESTA_CHECK_AS(IoError, n > 0 || errno == EINTR,
                   "bench: cannot write to the peer: ", std::strerror(errno));
    if (n > 0) done += size_t(n);
  }
  for (int waited_ms = 0; waited_ms < timeout_s * 1000;) {
    if (size_t end = impl_->pending.find('\n'); end != std::string::npos) {
      std::string answer = impl_->pending.substr(0, end);
      impl_->pending.erase(0, end + 1);
      return answer;
    }
    pollfd p{impl_->from, POLLIN, 0};
    if (poll(&p, 1, 100) > 0) {
      char buffer[65536];
      ssize_t n = read(impl_->from, buffer, sizeof buffer);
      if (n > 0) impl_->pending.append(buffer, size_t(n));
      continue;
    }
    waited_ms += 100;
    VESTA_CHECK_AS(IoError, !impl_->child->wait(0), "bench: the peer '", impl_->name,
                   "' ended with exit code ", impl_->child->exit_code());
  }
  throw IoError(detail::message("bench: no answer from the peer '", impl_->name, "' in ", timeout_s, " s"));
}

}  // namespace vesta::cli
