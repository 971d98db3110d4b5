// Neural networks: modules that own parameters, the usual layers, and losses.
//
// A module is a handle: copies share their parameters, and clone() makes independent ones. A
// network is a struct that derives from Module, holds its layers by value, registers them in its
// constructor and has a forward() of any signature:
//
//   struct Net : lazuli::nn::Module {
//     lazuli::nn::Linear fc1{784, 100}, fc2{100, 10};
//     Net() { register_modules({{"fc1", fc1}, {"fc2", fc2}}); }
//     lazuli::Tensor forward(const lazuli::Tensor& x) { return fc2(lazuli::relu(fc1(x))); }
//   };
//
// Layers are called, `fc1(x)`, or by forward(x); what they record carries the line of that call.
// Parameters are f32 on the default device unless moved by to(), and start as PyTorch's do.
#pragma once

#include "lazuli/nn/adaptive.h"
#include "lazuli/nn/attention.h"
#include "lazuli/nn/functional.h"
#include "lazuli/nn/init.h"
#include "lazuli/nn/layers.h"
#include "lazuli/nn/module.h"
#include "lazuli/nn/packed_sequence.h"
#include "lazuli/nn/recurrent.h"
#include "lazuli/nn/sequential.h"
#include "lazuli/nn/utils.h"
