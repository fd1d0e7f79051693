# verdict: too-much-work
# points: 6
# hint: nothing goes through autograd again
def deferred_linear(x, weight, queue):
    """Runs the layer a second time for the weight."""
    y = x @ weight.detach().T
    again = x.detach()

    def put_off(dy):
        def add_gradient():
            (again @ weight.T).backward(dy)

        queue.append(add_gradient)

    (y if y.requires_grad else y.requires_grad_()).register_hook(put_off)
    return y
