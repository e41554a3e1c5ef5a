aimport torch
x = torch.ones(2).cuda()  # samedevice: ignore[SD101, unguarded-cuda] known
# samedevice: ignore
y = x + 1
z = f(
    # samedevice: ignore[SD201]
    a,  # noqa: E501,SD203
    """
    """,  # noqa
)
