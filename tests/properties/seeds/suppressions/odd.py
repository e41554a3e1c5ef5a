c# samedevice: file-ignore[SD2, SD101,] reason # noqa: SD1 # type: ignore
#samedevice:ignore [ALL]
# samedevice: ignore SD101
# samedevice: ignore[
# samedevice: ignore[SD9]
# SameDevice : Ignore[SD002] é # noqa : sd201 SD501
x = 1  # samedevice: ignore[SD002]
# samedevice: ignroe[]
