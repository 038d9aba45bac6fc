#pragma once
// A peer that measures beside us: a child process that answers each line it is sent with one line. It is given the paths
// of two pipes as its last arguments, to read from and to write to; its standard streams stay free.
#include <memory>
#include <string>
#include <vector>

namespace vesta::cli {

class Peer {
 public:
  // IoError where it cannot be started.
  explicit Peer(std::vector<std::string> argv);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  // IoError where the peer ends, or is silent for timeout_s seconds.
  std::string ask(const std::string& line, int timeout_s = 120);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vesta::cli
