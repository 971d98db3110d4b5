// Which link a message takes from one device towards another.
#pragma once

#include "backend/npu/sim/config.h"

namespace lazuli::npu {

struct Hop {
  int device;     // at the other end
  int direction;  // of the link: 0 and 1 along the ring or a torus' row, 2 and 3 along its column
};

// Devices in a row: all of a ring; of a torus the longer side of the most square rectangle.
inline int DevicesInARow(const Config& config) {
  const auto devices = static_cast<int>(config.devices);
  int columns = devices;
  if (config.link.topology == Topology::kTorus) {
    for (int c = 1; c * c <= devices; ++c) {
      if (devices % c == 0) columns = devices / c;
    }
  }
  return columns;
}

// The shorter way round; of two equally long ones the ascending. A torus goes along the row first.
inline Hop NextHop(const Config& config, int from, int to) {
  const auto devices = static_cast<int>(config.devices);
  const int columns = DevicesInARow(config);
  auto step = [](int at, int goal, int size, int* next) {
    const int ahead = (goal - at + size) % size;
    const bool up = ahead * 2 <= size;
    *next = (at + (up ? 1 : size - 1)) % size;
    return up ? 0 : 1;
  };
  const int row = from / columns, column = from % columns;
  int next = 0;
  if (column != to % columns) {
    const int direction = step(column, to % columns, columns, &next);
    return {row * columns + next, direction};
  }
  const int direction = step(row, to / columns, devices / columns, &next);
  return {next * columns + column, 2 + direction};
}

}  // namespace lazuli::npu
