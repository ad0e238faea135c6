"""The cases of KernelBench.cpp in PyTorch, two threads: GB/s of the same operands and results."""
import time
import torch

torch.set_num_threads(2)


def best(run, repeats=12):
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def report(name, run, bytes_moved):
    seconds = best(run)
    print(f"{name:36s} {seconds * 1e3:7.3f} ms, {bytes_moved / seconds * 1e-9:6.1f} GB/s", flush=True)


x, b = torch.randn(2048, 3072), torch.randn(3072)
report("bias+gelu 2048x3072", lambda: torch.nn.functional.gelu(x + b, approximate="tanh"), 2 * x.nbytes)
h, g, b = torch.randn(8192, 768), torch.randn(768), torch.randn(768)
report("layer norm + affine 8192x768", lambda: torch.native_layer_norm(h, [768], g, b, 1e-5), 2 * h.nbytes)
_, mean, rstd = torch.native_layer_norm(h, [768], g, b, 1e-5)
dz = torch.randn_like(h)
backward = torch.ops.aten.native_layer_norm_backward
report("layer norm backward 8192x768", lambda: backward(dz, h, [768], mean, rstd, g, b, [True, True, True]), 3 * h.nbytes)
s = torch.randn(12288, 512)
report("softmax 12288x512", lambda: torch.softmax(s, 1), 2 * s.nbytes)
logits, labels = torch.randn(256, 50257, requires_grad=True), torch.randint(0, 50257, (256,))


def cross_entropy():
    logits.grad = None
    torch.nn.functional.cross_entropy(logits, labels).backward()


report("cross-entropy + gradient 256x50257", cross_entropy, 2 * logits.nbytes)
p = torch.nn.Parameter(torch.randn(8388608))
p.grad = torch.randn(8388608)
optimizer = torch.optim.AdamW([p], lr=1e-3, fused=True)
report("adamw update 8M", optimizer.step, 7 * p.nbytes)
