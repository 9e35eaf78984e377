"""The JSON Schemas of the files that users write and of the documents that syncengine writes."""
