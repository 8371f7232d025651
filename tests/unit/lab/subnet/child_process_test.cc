#include "lab/subnet/child_process.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/topology/import_text.h"

namespace heddle::lab {
namespace {

using std::chrono::milliseconds;

ChildCommand shell(const std::string& script) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  return {.words = {"/bin/sh", "-c", script},
          .variables = {{"HEDDLE_TEST", "a b"}},
          .directory = folder,
          .output = fmt::format("{}/heddle-child-{}", folder, getpid())};
}

std::string output_of(const ChildCommand& command) {
  const std::string text = read_text_file(command.output);
  std::filesystem::remove(command.output);
  return text;
}

TEST(ChildProcess, EndsWithItsStatusAndOutput) {
  const ChildCommand command = shell("echo \"$HEDDLE_TEST\" in \"$(pwd -P)\"; echo error >&2; exit 7");
  ChildProcess child(command);
  EXPECT_EQ(child.wait(milliseconds(10'000)), 7);
  EXPECT_EQ(child.wait(milliseconds(0)), 7);
  EXPECT_EQ(output_of(command),
            fmt::format("a b in {}\nerror\n", std::filesystem::canonical(command.directory).string()));
}

TEST(ChildProcess, SignalsAndMissingProgramsHaveStatusesOfTheirOwn) {
  const ChildCommand killed = shell("kill -9 $$");
  EXPECT_EQ(ChildProcess(killed).wait(milliseconds(10'000)), 128 + 9);
  ChildCommand missing = killed;
  missing.words = {"/nonexistent/program"};
  EXPECT_EQ(ChildProcess(missing).wait(milliseconds(10'000)), 127);
  output_of(killed);
}

TEST(ChildProcess, ItsGroupEndsWithIt) {
  const ChildCommand command = shell("sleep 100 & echo $!; wait");
  pid_t grandchild = 0;
  {
    ChildProcess child(command);
    for (int i = 0; i < 1000 && grandchild == 0; ++i) {
      EXPECT_EQ(child.wait(milliseconds(10)), std::nullopt);
      grandchild = static_cast<pid_t>(std::atoi(read_text_file(command.output).c_str()));
    }
    ASSERT_GT(grandchild, 0);
    EXPECT_EQ(kill(grandchild, 0), 0);
  }
  // Gone, or a zombie that nobody has waited for yet, as soon as it has taken the signal.
  const std::string state = fmt::format("/proc/{}/stat", grandchild);
  const auto ended = [&state] {
    std::ifstream file(state);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.empty() || text.find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 500 && !ended(); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(ended());
  output_of(command);
}

}  // namespace
}  // namespace heddle::lab
