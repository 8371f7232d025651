#include <cstdio>

int main() {
  std::puts("heddle " HEDDLE_VERSION);
  return 0;
}
